"""Backtest: labelled months of traffic with incidents, judged by the real Prometheus with the rules as generated.

profiles, incidents    five models, and what goes wrong with them: drawn from a seed
traffic, truth         counts per step, and what each incident spends of each error budget
resolution, page       which samples are kept, and the text that promtool turns into blocks
inline, engine         alerts as one query each, asked of a real Prometheus
alert_states           when each alert is pending, fires and resolves
judge, report          which page belongs to which incident; figures, tables

What is exact: the PromQL engine, the rules' text, `for` and `keep_firing_for`, raw counters with resets and gaps.
What is thinned, and what is left out, stands in `resolution` and `inline`.
"""
