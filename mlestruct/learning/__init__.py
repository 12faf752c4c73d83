"""Learning: a problem, the methods that minimise it, and the loop that holds their limits."""
