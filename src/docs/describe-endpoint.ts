import type { TObject } from '@sinclair/typebox'
import { type Endpoint, type RawBody, tokenRequired } from '#api/endpoint.ts'
import { scopeOf } from '#api/scope.ts'
import { envelopeOf, errorResponses } from './error-responses.ts'
import { parameterNames } from './path-parameters.ts'

type EndpointResponse = Endpoint['responses'][number]

/** The operation of an endpoint in the OpenAPI document, apart from what all operations share. */
export function describeEndpoint(endpoint: Endpoint) {
  const { path, query, body, permission, credential } = endpoint
  const scope = scopeOf(endpoint)
  const names = parameterNames(path)
  const parameters = [
    ...Object.entries(endpoint.params ?? {}).map(([name, description]) => ({
      name: names.get(name) ?? name,
      in: 'path',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    ...describeParameters('query', query && ('read' in query ? query['schema'] : query)),
    ...describeParameters('header', endpoint.headers),
  ]
  const errors = {
    ...(body?.kind === 'json' ? { malformed_json: 'The request body is not valid JSON.' } : {}),
    ...(credential === 'jwt' ? { jwt_required: tokenRequired } : {}),
    ...endpoint.errors,
  }
  return {
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...(endpoint.description === undefined ? {} : { description: endpoint.description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: describeBody(body) }),
    ...(permission === 'public' ? {} : { 'x-permission': permission }),
    ...(scope === null ? {} : { 'x-scope': scope }),
    responses: {
      ...describeResponses(endpoint.responses),
      ...errorResponses(errors, envelopeOf(path)),
    },
  }
}

function describeBody(body: NonNullable<Endpoint['body']>) {
  const { isOptional } = body
  const content =
    body.kind === 'raw'
      ? withSchemas(body.content)
      : { 'application/json': { schema: body.schema, example: body.example } }
  return { content, required: !isOptional }
}

/** Bytes, unless an endpoint says more. */
function withSchemas(content: RawBody['content']) {
  return Object.fromEntries(
    Object.entries(content).map(([type, media]) => [
      type,
      { schema: { type: 'string', format: 'binary' }, ...media },
    ]),
  )
}

function describeParameters(place: 'query' | 'header', schema: TObject | undefined) {
  if (schema === undefined) return []
  return Object.entries(schema.properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: schema.required?.includes(name) === true && rest['default'] === undefined,
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }))
}

function describeResponses(responses: Endpoint['responses']) {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { headers, ...response }]) => [
      status,
      {
        ...describeResponse(status, response),
        ...(headers === undefined ? {} : { headers: describeHeaders(headers) }),
      },
    ]),
  )
}

/**
 * The example of a stream or a socket stands in the description: its schema is that of one event,
 * which the example of many violates.
 */
function describeResponse(status: string, { description, content }: EndpointResponse) {
  if (content === undefined) return { description }
  const shown: string[] = []
  const described = Object.entries(content).map(([type, { example, ...media }]) => {
    if (example === undefined || (status !== '101' && type !== 'text/event-stream')) {
      return [type, { ...media, ...(example === undefined ? {} : { example }) }]
    }
    const text = typeof example === 'string' ? example.trim() : JSON.stringify(example)
    shown.push(`\n\n\`\`\`text\n${text}\n\`\`\``)
    return [type, media]
  })
  return { description: description + shown.join(''), content: Object.fromEntries(described) }
}

function describeHeaders(headers: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [
      name,
      { description, schema: { type: 'string' } },
    ]),
  )
}
