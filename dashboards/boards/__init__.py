"""One module per board: `board(fleet, deployment)` builds it, and the module's name is the board's uid."""
