import { Elysia } from 'elysia'
import { errorBody, messagesErrorBody } from '#api/error-shapes.ts'
import { tags } from '#api/tags.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { version } from '#package.json'
import { commonResponses } from './common-answers.ts'
import { finishOperation, securitySchemes } from './finish-operation.ts'
import { createSchemaLift } from './lift-schemas.ts'

/** A route as Elysia lists it. */
export type DescribedRoute = {
  readonly method: string
  readonly path: string
  readonly hooks?: { readonly detail?: unknown }
}

const overview = `
A streaming gateway for language models and speech.

**Credentials.** Send a token of the identity provider or an API key as \`Authorization: Bearer …\`,
or an API key as \`X-Api-Key\`. WebSockets also take either as the query parameter \`token\`. Each
operation names the permission that the caller's groups must grant.

**Errors.** Outside of /compat the body is \`{"error": {"message", "type", "param", "code"}}\`; under
/compat it is that of the Messages protocol. Programs should look at \`code\`.

**Request ids.** Every answer has the header \`x-request-id\`, which also stands in the log.
`.trim()

/** The OpenAPI document of these routes. Throws where what they say of themselves contradicts itself. */
export async function makeDocument(routes: readonly DescribedRoute[]): Promise<JsonObject> {
  const draft = await draftDocument(routes)
  const schemas: JsonObject = {}
  const liftSchemasOf = createSchemaLift(schemas)
  liftSchemasOf([{ schema: errorBody }, { schema: messagesErrorBody }])
  const paths = mapValues(asRecord(draft['paths']), (operations, path) =>
    mapValues(asRecord(operations), (said, method) =>
      finishOperation(asRecord(liftSchemasOf(said)), { method, path }),
    ),
  )
  demandUniqueIds(paths)
  return {
    openapi: '3.1.0',
    info: { title: 'Sluice', version, description: overview },
    servers: [{ url: '/' }],
    tags: usedTags(paths),
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort()),
      responses: commonResponses,
      securitySchemes,
    },
  }
}

function usedTags(paths: Record<string, Record<string, JsonObject>>) {
  const operations = Object.values(paths).flatMap((path) => Object.values(path))
  const used = new Set(operations.flatMap(({ tags: names }) => names))
  return Object.entries(tags)
    .filter(([name]) => used.has(name))
    .map(([name, description]) => ({ name, description }))
}

/** What the plugin makes of the routes: paths and operations, without any handler of ours. */
async function draftDocument(routes: readonly DescribedRoute[]): Promise<JsonObject> {
  // Loading it takes a tenth of a second, which few processes ever need.
  const { swagger } = await import('@elysiajs/swagger')
  const specPath = '/draft-of-the-document.json'
  const listed = new Elysia()
  for (const { method, path, hooks } of routes) {
    const detail = withWildcardNamed(asRecord(hooks?.detail))
    listed.route(method, pathFor(path), () => '', { detail })
  }
  listed.use(swagger({ path: '/page-of-the-plugin', specPath, excludeStaticFile: false }))
  const answer = await listed.handle(new Request(`http://document${specPath}`))
  return asRecord(await answer.json())
}

/** What `*` stands for is the name of a model, which may hold slashes. */
const wildcardName = 'name'

/** As callers write it: without the slash at its end, and with a name for what `*` stands for. */
function pathFor(path: string): string {
  const plain = path.length > 1 ? path.replace(/\/$/, '') : path
  return plain.replace('*', `:${wildcardName}`)
}

function withWildcardNamed(detail: JsonObject): JsonObject {
  const { parameters } = detail
  if (!Array.isArray(parameters)) return detail
  const isWildcard = (parameter: JsonObject) => parameter['name'] === '*'
  const named = parameters
    .map(asRecord)
    .map((parameter) => (isWildcard(parameter) ? { ...parameter, name: wildcardName } : parameter))
  return { ...detail, parameters: named }
}

function demandUniqueIds(paths: Record<string, Record<string, JsonObject>>): void {
  const seen = new Map<unknown, string>()
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { operationId }] of Object.entries(operations)) {
      const place = `${method} ${path}`
      const other = seen.get(operationId)
      if (other !== undefined) throw new Error(`${place} and ${other} are both ${operationId}.`)
      seen.set(operationId, place)
    }
  }
}

function mapValues<T>(
  record: JsonObject,
  change: (value: unknown, key: string) => T,
): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]))
}
