"""One module per board; each names its `BOARD`, and its file name is the board's uid."""
