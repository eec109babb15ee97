module gettier.dev/gettierd/daemon/e2e/testdata/gosdk

go 1.26.0
