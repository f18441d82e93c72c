"""Stories: what each alert has to live through, one file per group of alerts, found by being there.

Each file defines `STORIES`. A story tells a trouble that just deserves its alert and one that just does not; every
situation of `situations.Situation` is made from these two, unless the story says why it cannot occur.
"""
