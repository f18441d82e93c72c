"""Runbooks: one page per alert, for whoever was woken.

In: `ALERTS`, the fleet's objectives, and the pages' hand-written parts. Out: the same pages with fresh facts.
"""
