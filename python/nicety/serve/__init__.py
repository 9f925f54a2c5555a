"""The workbench: a page in the browser, on the loopback interface only. Its protocol is in `web/src/protocol.ts`."""
