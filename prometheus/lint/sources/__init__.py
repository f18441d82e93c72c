"""Sources: files -> the expressions in them, each with its place.

In: rule files (.yml), boards (.json), runbooks (.md). Out: `Written` expressions.
"""
