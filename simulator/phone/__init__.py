"""A phone: a web page that shows the pages Alertmanager sends, and an API for drills to read them."""
