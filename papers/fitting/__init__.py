"""Implicit and procedural fitting (2009): learning for the beliefs that inference will produce."""
