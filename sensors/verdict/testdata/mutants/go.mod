module gettier.dev/gettierd/sensors/verdict/testdata/mutants

go 1.26.0
