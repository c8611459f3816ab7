import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as compiler from 'typescript-api'
import { asRecord, parseJson } from '#lib/json.ts'

/** Renders the types of an OpenAPI document, and an index of its operations by method and path. */
export async function renderTypes(
  document: string,
  folder: string,
): Promise<{ types: string; operations: string }> {
  // The generator needs the compiler as a library, which the project's own compiler is not.
  await Bun.plugin({
    name: 'the compiler as a library',
    setup(build) {
      build.module('typescript', () => ({ exports: { ...compiler }, loader: 'object' }))
    },
  })
  const { createClient } = await import('@hey-api/openapi-ts')
  await createClient({
    input: document,
    output: folder,
    plugins: ['@hey-api/typescript'],
    logs: { level: 'silent' },
  })
  const types = readFileSync(join(folder, 'types.gen.ts'), 'utf8')
  const paths = asRecord(asRecord(parseJson(readFileSync(document, 'utf8')))['paths'])
  return { types, operations: renderOperations(paths, types) }
}

function renderOperations(paths: Record<string, unknown>, types: string): string {
  const lines = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(asRecord(methods)).flatMap(([method, operation]) => {
      const id = String(asRecord(operation)['operationId'])
      const name = id.charAt(0).toUpperCase() + id.slice(1)
      const has = (suffix: string) => types.includes(`export type ${name}${suffix} =`)
      if (!has('Data')) return []
      const response = has('Response') ? `types.${name}Response` : 'undefined'
      return `  '${method.toUpperCase()} ${path}': { data: types.${name}Data; response: ${response} }`
    }),
  )
  return `import type * as types from './types.ts'\n\nexport type Operations = {\n${lines.join('\n')}\n}\n`
}
