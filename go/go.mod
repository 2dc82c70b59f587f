module forrest.invalid/forrest

go 1.24
