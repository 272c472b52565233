"""The paper's evaluation: its data, made anew; its rules; its tables, measured here."""
