"""Which tokens may follow a hypothesis, and the best of them."""
