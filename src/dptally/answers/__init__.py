"""What a plan is asked: compare, convert, explain, and an accountant that counts along."""
