import type { TObject, TSchema } from '@sinclair/typebox'
import type { DocumentDecoration } from 'elysia'
import type { Errors } from '#api/endpoint.ts'
import type { Tag } from '#api/tags.ts'
import { errorResponses } from './error-responses.ts'

/** What the OpenAPI document says of one route, apart from its path and the permission it demands. */
export type OperationText = {
  readonly tag: Tag
  /** A few words in the imperative, without a full stop. */
  readonly summary: string
  /** Markdown. */
  readonly description?: string
  /** What each `:name` of the path is. */
  readonly path?: Readonly<Record<string, string>>
  /** One parameter for each property. */
  readonly query?: TObject
  readonly headers?: TObject
  readonly body?: Body
  readonly answers: Readonly<Record<number, Answer>>
  /** The failures of this route alone; those that any request can meet are said once for all. */
  readonly errors?: Errors
}

export type Content = Readonly<Record<string, { schema?: TSchema; example?: unknown }>>
type Body = { readonly content: Content; readonly isOptional?: boolean }
type Answer = {
  readonly description: string
  readonly content?: Content
  readonly headers?: Readonly<Record<string, string>>
}

/** Schemas with an `$id` stand once in the document, under that name. */
export function json(schema: TSchema, example: unknown): Content {
  return { 'application/json': { schema, example } }
}

/** `example` is the text on the wire, shortened; `description` says which events there are. */
export function eventStream(schema: TSchema, example: string): Content {
  return { 'text/event-stream': { schema, example } }
}

/** Bytes of any of these media types. */
export function bytes(...mediaTypes: readonly string[]): Content {
  return Object.fromEntries(mediaTypes.map((type) => [type, {}]))
}

/** A form with files; a property of a file has `{ type: 'string', format: 'binary' }`. */
export function form(schema: TObject): Content {
  return { 'multipart/form-data': { schema } }
}

/** For a route's `detail`. */
export function operation(text: OperationText): DocumentDecoration {
  const parameters = [
    ...Object.entries(text.path ?? {}).map(([name, description]) => ({
      name,
      in: 'path',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    ...parametersOf('query', text.query),
    ...parametersOf('header', text.headers),
  ]
  const said = {
    tags: [text.tag],
    summary: text.summary,
    ...(text.description === undefined ? {} : { description: text.description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(text.body === undefined
      ? {}
      : { requestBody: { content: text.body.content, required: text.body.isOptional !== true } }),
    responses: {
      ...answersOf(text.answers),
      ...errorResponses(text.errors ?? {}, text.tag === 'Messages' ? 'MessagesError' : 'Error'),
    },
  }
  // Elysia knows the types of OpenAPI 3.0; ours are schemas of 3.1, which are those of TypeBox.
  return said as DocumentDecoration
}

function parametersOf(place: 'query' | 'header', schema: TObject | undefined) {
  if (schema === undefined) return []
  return Object.entries(schema.properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: schema.required?.includes(name) === true,
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }))
}

function answersOf(answers: OperationText['answers']) {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { headers, ...answer }]) => [
      status,
      headers === undefined ? answer : { ...answer, headers: headersOf(headers) },
    ]),
  )
}

function headersOf(headers: Readonly<Record<string, string>>) {
  const described = Object.entries(headers).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' } },
  ])
  return Object.fromEntries(described)
}
