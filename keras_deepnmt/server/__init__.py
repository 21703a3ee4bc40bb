"""Serves translators to others, over HTTP.

It is a folder of its own, beside `serving/`, whose exports and clients need no
server: the queue and the web interface here are tested without any model, and
nothing here is imported unless a server is started.
"""
