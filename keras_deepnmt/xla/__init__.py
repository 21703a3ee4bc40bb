"""Compiling by XLA: functions, names of programs, what is kept, events."""
