"""Selection: mechanisms that name the best of several candidates, or the queries above a threshold."""
