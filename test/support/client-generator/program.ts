import * as compiler from 'typescript-api'

/**
 * A program: `bun program.ts DOCUMENT FOLDER` generates a client of an OpenAPI document. The
 * generator needs the compiler as a library, which the project's own compiler is not.
 */
await Bun.plugin({
  name: 'the compiler as a library',
  setup(build) {
    build.module('typescript', () => ({ exports: { ...compiler }, loader: 'object' }))
  },
})
const { createClient } = await import('@hey-api/openapi-ts')
const [input = '', output = ''] = Bun.argv.slice(2)
await createClient({
  input,
  output,
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
  logs: { level: 'silent' },
})
