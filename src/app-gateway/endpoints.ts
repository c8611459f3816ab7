import { type Static, Type } from '@sinclair/typebox'
import { bytes, type Endpoint, endpoint, json, rawBody } from '#api/endpoint.ts'
import { ifNoneMatchHeader } from '#api/shapes.ts'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import { entityTag, isKnown } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { settingsFor } from './managed-settings.ts'
import { protocolText } from './protocol-text.ts'
import type { Signal } from './telemetry.ts'

type AppGatewayDeps = {
  auth: Pick<Auth, 'originOf'>
  config: Pick<Config, 'appGateway'>
  receive: (signal: Signal, request: Request, context: RequestContext) => Promise<void>
}

const tag = 'Applications'
const signals: readonly Signal[] = ['metrics', 'logs', 'traces']

/** What applications of the Messages protocol expect of a company's gateway beside the model API. */
export function appGatewayEndpoints({ auth, config, receive }: AppGatewayDeps): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/compat/protocol',
      permission: 'public',
      tag,
      summary: 'Show what applications may expect',
      responses: {
        200: {
          description: 'The contract.',
          content: { 'text/markdown': { schema: Type.String(), example: protocolText } },
        },
      },
      handle: () =>
        new Response(protocolText, { headers: { 'content-type': 'text/markdown;charset=utf-8' } }),
    }),

    endpoint({
      method: 'GET',
      path: '/compat/.well-known/oauth-authorization-server',
      permission: 'public',
      tag,
      summary: 'Find the sign-in of applications',
      description: 'Authorization server metadata (RFC 8414) of the login of devices.',
      responses: {
        200: {
          description: 'The metadata.',
          content: json(metadata, metadataOf('https://gateway.example.org')),
        },
      },
      handle: ({ request, server }) => metadataOf(auth.originOf(request, server)),
    }),

    endpoint({
      method: 'GET',
      path: '/compat/managed/settings',
      permission: 'can_access_api',
      tag,
      summary: 'Get the settings of your applications',
      description: `Configured by group (\`[[app_gateway.settings]]\`). \`checksum\` is the SHA-256 of the settings as JSON with
sorted keys and no whitespace; quoted, it is the entity tag.`,
      headers: ifNoneMatchHeader,
      responses: {
        200: {
          description: 'The settings.',
          content: json(managedSettings, exampleSettings),
          headers: { etag },
        },
        304: { description: 'The settings have not changed.', headers: { etag } },
      },
      errors: { not_found: noPolicy },
      handle({ context: { principal }, request, set }) {
        const found = settingsFor(config.appGateway.settings, principal.groups)
        if (found === null) throw new AppError('not_found', noPolicy)
        const ifNoneMatch = request.headers.get('if-none-match')
        const headers = { etag: entityTag(found.checksum), 'cache-control': 'private, no-cache' }
        // `*` asks whether there are settings at all.
        if (ifNoneMatch?.trim() !== '*' && isKnown(ifNoneMatch, found.checksum)) {
          return new Response(null, { status: 304, headers })
        }
        Object.assign(set.headers, headers)
        return found
      },
    }),

    ...signals.map((signal) =>
      endpoint({
        method: 'POST',
        path: `/compat/v1/${signal}`,
        permission: 'can_access_api',
        tag,
        summary: `Export ${signal} of an application`,
        description: `OTLP over HTTP. Forwarded to the collector of the configuration with the resource attributes
\`sluice.user.id\`, \`sluice.user.groups\` and \`sluice.key.id\`, which exporters cannot set; discarded without one.`,
        body: rawBody({ ...bytes('application/x-protobuf'), ...json(otlpExport, {}) }),
        responses: {
          200: { description: 'Forwarded, or discarded.', content: json(Type.Object({}), {}) },
        },
        errors: {
          invalid_request: 'The body is not valid protobuf.',
          malformed_json: 'The request body is no JSON object.',
          request_too_large: 'The request body exceeds the limit of 4194304 bytes.',
          service_unavailable: 'The telemetry collector is unavailable; retry.',
        },
        async handle({ request, context }) {
          await receive(signal, request, context)
          return {}
        },
      }),
    ),
  ]
}

const otlpExport = Type.Object({}, { description: 'An export request of OTLP.' })
const noPolicy = 'There are no settings for your groups.'
const etag = 'The checksum of the settings.'

const metadata = Type.Object(
  {
    issuer: Type.String(),
    device_authorization_endpoint: Type.String(),
    token_endpoint: Type.String(),
    revocation_endpoint: Type.String(),
    grant_types_supported: Type.Array(Type.String()),
    response_types_supported: Type.Array(Type.String()),
    token_endpoint_auth_methods_supported: Type.Array(Type.String()),
  },
  { $id: 'AuthorizationServerMetadata' },
)

function metadataOf(origin: string): Static<typeof metadata> {
  return {
    issuer: `${origin}/compat`,
    device_authorization_endpoint: `${origin}/login/device`,
    token_endpoint: `${origin}/login/device/token`,
    revocation_endpoint: `${origin}/login/device/revoke`,
    grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['none'],
  }
}

const managedSettings = Type.Object(
  {
    uuid: Type.String(),
    checksum: Type.String(),
    settings: Type.Record(Type.String(), Type.Unknown()),
  },
  { $id: 'ManagedSettings' },
)
const exampleSettings = settingsFor(
  [
    {
      groups: [],
      settings: { env: { DISABLE_UPDATES: '1' }, permissions: { deny: ['WebFetch'] } },
    },
  ],
  [],
)
