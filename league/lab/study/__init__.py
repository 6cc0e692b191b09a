"""Studies: arms over paired seeds, compared until it is settled which is better."""
