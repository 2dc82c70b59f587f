module forrest.invalid/forrest/ethdb

go 1.25.0

require (
	forrest.invalid/forrest v0.0.0
	github.com/ethereum/go-ethereum v1.17.10
)

replace forrest.invalid/forrest => ../
