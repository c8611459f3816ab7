/** The tests that depend on the database most; they run on the embedded one also where there is a server. */
const embeddedTests = [
  'test/jobs/',
  'test/db/client.test.ts',
  'test/retrieval/search/access.test.ts',
  'test/retrieval/search/search.test.ts',
  'test/retrieval/search/two-indexes.test.ts',
]

export const needsEmbeddedDatabase = (file: string): boolean =>
  embeddedTests.some((path) => file.startsWith(path))
