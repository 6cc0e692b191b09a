"""A contender as a program that speaks the protocols of other people's boards: GTP, UCI and OpenSpiel."""
