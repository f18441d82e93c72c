"""Drills: break something on purpose, and watch the right page arrive and resolve."""
