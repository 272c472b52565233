"""SPARQL 1.1 into the algebra of queries. rdflib parses it; its algebra is translated node by node."""
