"""Differential: the same pages for a real Prometheus and for our parser; out, where their verdicts differ.

`serve` hands pages to Prometheus, `real` reads back what it made of them, `ours` asks our parser, `compare` sets both
side by side and knows the differences on purpose, `mutate` invents pages from `known` and `oddities`, `minimise`
shrinks a finding, `session` does all that for as many pages as are wanted.
"""
