"""Exchange: objectives as other tools read them.

In: a `Fleet`, or OpenSLO documents. Out: OpenSLO v1 documents, a Sloth specification, or the `slos` section of
fleet.yml. Shares stay decimals in both directions.
"""
