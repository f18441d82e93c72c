"""GPU: what the cards say. In: a driver or another exporter's page. Out: the page of /gpu, in the catalogue's names.

    nvml (its own process) ┐
    dcgm, amd (a page)     ┴─► Snapshot ─► collector ─► page

A source never raises: what it cannot tell becomes a failure with a sentence, and never hides another source or card.
"""
