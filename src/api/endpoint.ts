import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { Server } from 'bun'
import type { Permission } from '#auth/permissions.ts'
import type { Principal } from '#auth/principal.ts'
import type { Scope } from '#auth/scopes.ts'
import type { ErrorKind } from '#lib/errors.ts'
import type { Exchange } from '#lib/exchange.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { compileChecker } from '#lib/schema.ts'
import { refusedBySchema } from '#lib/unprocessable.ts'

/**
 * An HTTP endpoint, declared once: it is authorised, validated, executed and documented from this
 * data. `mount.ts` serves it; the OpenAPI document is derived from it.
 */
export type Endpoint = Declaration & {
  readonly permission: Permission | 'public'
  readonly params?: Readonly<Record<string, string>>
  readonly query?: TObject | QueryReader<unknown>
  readonly body?: JsonBody<unknown> | RawBody
  /** The type of its input is checked by `endpoint`. */
  readonly handle: (input: never) => unknown
}

/** The parts of a declaration that the types of the handler's input do not depend on. */
type Declaration = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The whole path with its parameters: `/v1/agents/:id`. */
  readonly path: string
  /** A tag that its module declares. */
  readonly tag: string
  /** The scope that an API key needs, null for none, where it differs from that of the tag. */
  readonly scope?: Scope | null
  /** A few words in the imperative, without a full stop. */
  readonly summary: string
  /** Markdown. */
  readonly description?: string
  /** Request headers that the endpoint reads, for the document. */
  readonly headers?: TObject
  /** By status. A single success status other than 200 is set before the response is sent. */
  readonly responses: Readonly<Record<number, ResponseDeclaration>>
  /** The errors of this endpoint alone; those that any request can meet are documented once. */
  readonly errors?: Errors
  /**
   * `jwt`: an API key is refused with `jwt_required`, before the body is read. By default every
   * credential is accepted.
   */
  readonly credential?: 'jwt'
  /**
   * `handler`: the handler authorises the request itself, because it has to refuse in another way
   * than by a status (WebSocket clients of browsers cannot read one). Its context has no principal.
   */
  readonly authorization?: 'handler'
  /** Runs after authorisation and before validation, so that its headers are sent with refusals too. */
  readonly before?: (set: ResponseSettings) => void
}

type ResponseDeclaration = {
  readonly description: string
  readonly content?: Content
  /** Names of response headers with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>
}

/** By media type. */
export type Content = Readonly<Record<string, { schema?: TSchema; example?: unknown }>>

/** By kind: the message as a caller sees it, with a code where the kind is not precise enough. */
export type Errors = { readonly [Kind in ErrorKind]?: ErrorExample | readonly ErrorExample[] }
type ErrorExample = string | { readonly code: string; readonly message: string }

/** The message of `jwt_required`. */
export const tokenRequired = 'API keys are created and changed with a token, not with an API key.'

/** A JSON request body: `schema` documents it, `read` validates it and gives the handler its input. */
export type JsonBody<T> = {
  readonly kind: 'json'
  readonly schema: TSchema
  readonly example: unknown
  readonly isOptional: boolean
  /** A lower limit than that of the configuration. */
  readonly bytesMax: number
  readonly read: (value: unknown) => T
}

/** A body that the handler reads from the request by itself: a form, a file, a stream. */
export type RawBody = {
  readonly kind: 'raw'
  readonly content: Content
  readonly isOptional: boolean
}

/** Query parameters whose rules a schema cannot express. `schema` documents them. */
export type QueryReader<T> = {
  readonly schema: TObject
  /** Throws an `AppError` of status 422 (400 on the model surfaces). */
  readonly read: (query: URLSearchParams) => T
}

/** What a handler may set of its response: Elysia's own object, so nothing is copied. */
export type ResponseSettings = {
  headers: Record<string, string | number>
  status?: number | string
}

/** A request that is not authorised, or not yet. */
export type PublicContext = Omit<RequestContext, 'principal' | 'keyId'> & {
  readonly exchange: Exchange
}

/** The context of an authorised request. */
export type CallerContext = RequestContext<Principal> & { readonly exchange: Exchange }

type QueryOf<Q> =
  Q extends QueryReader<infer T> ? T : Q extends TObject ? Static<Q> : Record<string, never>
type BodyOf<B> = B extends JsonBody<infer T> ? T : undefined

export type EndpointInput<Params, Query, Body, Context> = {
  readonly params: { readonly [Name in keyof Params]: string }
  readonly query: Query
  readonly body: Body
  readonly context: Context
  readonly request: Request
  readonly set: ResponseSettings
  readonly server: Server<unknown> | null
}

/**
 * Declares an endpoint. The handler gets typed and validated input; it returns a JSON value, a
 * `Response`, or undefined for an empty body, and throws an `AppError` for a failure.
 */
export function endpoint<
  const D extends Declaration,
  const Access extends Permission | 'public',
  const Params extends Readonly<Record<string, string>> = Record<never, string>,
  Query extends TObject | QueryReader<unknown> = QueryReader<Record<string, never>>,
  Body extends JsonBody<unknown> | RawBody = RawBody,
>(
  definition: D & {
    readonly permission: Access
    /** Each parameter of the path with its description. */
    readonly params?: Params
    readonly query?: Query
    readonly body?: Body
    readonly handle: (
      input: EndpointInput<
        Params,
        QueryOf<Query>,
        BodyOf<Body>,
        Access extends 'public'
          ? PublicContext
          : D extends { authorization: 'handler' }
            ? PublicContext
            : CallerContext
      >,
    ) => unknown
  },
): Endpoint {
  return definition
}

type JsonBodyOptions = {
  readonly example: unknown
  readonly isOptional?: boolean
  readonly bytesMax?: number
}

/** A JSON body with rules that a schema cannot express; `read` throws an `AppError`. */
export function jsonBody<T>(
  schema: TSchema,
  options: JsonBodyOptions & { readonly read: (value: unknown) => T },
): JsonBody<T>
/** A JSON body that its schema validates: status 422 `unknown_field` or `unprocessable`. */
export function jsonBody<T extends TSchema>(
  schema: T,
  options: JsonBodyOptions,
): JsonBody<Static<T>>
export function jsonBody(
  schema: TSchema,
  options: JsonBodyOptions & { readonly read?: (value: unknown) => unknown },
): JsonBody<unknown> {
  return {
    kind: 'json',
    schema,
    example: options.example,
    isOptional: options.isOptional ?? false,
    bytesMax: options.bytesMax ?? Number.POSITIVE_INFINITY,
    read: options.read ?? validatorOf(schema),
  }
}

/** A body that the handler reads by itself, of any of these media types. */
export function rawBody(content: Content, { isOptional = false } = {}): RawBody {
  return { kind: 'raw', content, isOptional }
}

function validatorOf(schema: TSchema): (value: unknown) => unknown {
  const checker = compileChecker(schema)
  return (value) => {
    if (checker.check(value)) return value
    throw refusedBySchema(checker.firstError(value))
  }
}

/** A JSON response. Schemas with an `$id` appear once in the document, under that name. */
export function json(schema: TSchema, example: unknown): Content {
  return { 'application/json': { schema, example } }
}

/** `example` is the text on the wire, shortened; `schema` is that of one event. */
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
