import { Elysia } from 'elysia'
import type { Endpoint } from '#api/endpoint.ts'
import { errorBody, messagesErrorBody } from '#api/error-shapes.ts'
import { isMessagesPath } from '#http/error-envelope.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import type { Tags } from '#module.ts'
import { version } from '#package.json'
import { commonResponses, withCommonResponses } from './common-responses.ts'
import { describeEndpoint } from './describe-endpoint.ts'
import { createSchemaLift } from './lift-schemas.ts'
import { operationId } from './operation-id.ts'

const overview = `
A streaming gateway for language models and speech.

**Credentials.** Send a token of the identity provider or an API key as \`Authorization: Bearer …\`,
or an API key as \`X-Api-Key\`. WebSockets also take either as the query parameter \`token\`. Each
operation names the permission that one of the caller's groups must grant.

**Errors.** Outside of /compat the body is \`{"error": {"message", "type", "param", "code"}}\`; under
/compat it is that of the Messages protocol. Programs should look at \`code\`.

**Request ids.** Every response has the header \`x-request-id\`, which is also in the log.
`.trim()

/** The first tags of the document; the others follow in the order of their modules. */
const leadingTags = ['Models', 'Responses', 'Conversations', 'API keys', 'Speech', 'Files']

/** The OpenAPI document. Throws for undeclared tags and duplicate operation ids or schema names. */
export async function makeDocument(
  endpoints: readonly Endpoint[],
  tags: Tags,
): Promise<JsonObject> {
  const draft = await draftDocument(endpoints)
  const schemas: JsonObject = {}
  const liftSchemasOf = createSchemaLift(schemas)
  liftSchemasOf([{ schema: errorBody }, { schema: messagesErrorBody }])
  const paths = mapValues(asRecord(draft['paths']), (operations, path) =>
    mapValues(asRecord(operations), (operation, method) =>
      completeOperation(asRecord(liftSchemasOf(operation)), { method, path }),
    ),
  )
  requireUniqueIds(paths)
  return {
    openapi: '3.1.0',
    info: { title: 'Sluice', version, description: overview },
    servers: [{ url: '/' }],
    tags: usedTags(endpoints, tags),
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort()),
      responses: commonResponses,
      securitySchemes,
    },
  }
}

function usedTags(endpoints: readonly Endpoint[], tags: Tags) {
  const used = new Set(endpoints.map(({ tag }) => tag))
  const undeclared = [...used].find((name) => tags[name] === undefined)
  if (undeclared !== undefined) throw new Error(`No module declares the tag ${undeclared}.`)
  return [...new Set([...leadingTags, ...Object.keys(tags)])]
    .filter((name) => used.has(name))
    .map((name) => ({ name, description: tags[name] }))
}

/** The paths and operations as the plugin assembles them from routes without handlers. */
async function draftDocument(endpoints: readonly Endpoint[]): Promise<JsonObject> {
  // Loading it takes 0.1 s, which few processes ever need.
  const { swagger } = await import('@elysiajs/swagger')
  const specPath = '/draft-of-the-document.json'
  const listed = new Elysia()
  for (const endpoint of endpoints) {
    const detail = withWildcardNamed(asRecord(describeEndpoint(endpoint)))
    listed.route(endpoint.method, pathFor(endpoint.path), () => '', { detail })
  }
  listed.use(swagger({ path: '/page-of-the-plugin', specPath, excludeStaticFile: false }))
  const response = await listed.handle(new Request(`http://document${specPath}`))
  return asRecord(await response.json())
}

/** `*` matches the name of a model, which may contain slashes. */
const wildcardName = 'name'

/** Without a trailing slash, and with a parameter in place of `*`. */
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

function requireUniqueIds(paths: Record<string, Record<string, JsonObject>>): void {
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

/** Any operation accepts the first two; a WebSocket accepts the third as well. */
const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of the identity provider (JWT), or an API key: `sk-svc-v1-…`.',
  },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Api-Key',
    description: 'An API key. It takes precedence over an `Authorization` header.',
  },
  token: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description: 'A token or an API key for a WebSocket, whose client often cannot set headers.',
  },
}

/** Adds to an operation what is derived: its id, security and common responses. */
function completeOperation(
  operation: JsonObject,
  { method, path }: { method: string; path: string },
): JsonObject {
  const { 'x-permission': permission, description, responses, ...rest } = operation
  const own = asRecord(responses)
  const isSocket = '101' in own
  const isPublic = permission === undefined
  // A public endpoint with a credential of its own documents status 401 itself.
  const isOpenToAll = isPublic && !('401' in own)
  const envelope = isMessagesPath(path) ? 'MessagesError' : 'Error'
  return {
    ...rest,
    operationId: operationId({ method, path, isSocket }),
    description: [description, isOpenToAll ? 'Open to everyone.' : describePermission(permission)]
      .filter(Boolean)
      .join('\n\n'),
    ...(isPublic ? {} : { 'x-permission': permission }),
    ...(isSocket ? { 'x-websocket': true } : {}),
    security: isPublic ? publicSecurity(isOpenToAll) : security(isSocket),
    responses: withCommonResponses(own, { envelope, isPublic }),
  }
}

function security(isSocket: boolean) {
  return [...(isSocket ? [{ token: [] }] : []), { bearer: [] }, { apiKey: [] }]
}

/** Without a credential, or with a bearer token where the operator configured one. */
function publicSecurity(isOpenToAll: boolean) {
  return isOpenToAll ? [] : [{}, { bearer: [] }]
}

function describePermission(permission: unknown): string {
  if (permission === undefined) return ''
  if (permission === 'can_access_api') return 'Requires the permission `can_access_api`.'
  return `Requires the permissions \`can_access_api\` and \`${permission}\`.`
}
