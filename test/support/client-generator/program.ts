import * as compiler from 'typescript-api'

/**
 * A program: `bun program.ts DOCUMENT FOLDER` makes a client of an OpenAPI document, as a user of it
 * would. The generator needs the compiler as a library, which the one in use no longer is.
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
