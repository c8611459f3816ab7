import { Type } from '@sinclair/typebox'
import { entry, section, text, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'
import { isUrl, webProtocols } from '#lib/url.ts'

const policiesMax = 1_000

/** The keys of what coding and desktop applications get of a company's gateway beside the model API. */
export const appGatewayKeys = {
  appGateway: section(
    'The contract between applications of the Messages protocol and a company gateway, under /compat: settings and telemetry.',
    {
      settings: Type.Array(
        entry('Settings of the applications of these groups.', {
          groups: Type.Array(Type.String({ minLength: 1 }), {
            description: 'Groups whose members get them; empty: everyone.',
            default: [],
          }),
          settings: Type.Record(Type.String(), Type.Unknown(), {
            description: 'What the application has as managed-settings.json.',
          }),
        }),
        {
          description:
            'Settings that applications fetch (GET /compat/managed/settings). The first entry with a group of the user counts.',
          default: [],
          maxItems: policiesMax,
        },
      ),
      telemetryUrl: Type.Optional(
        text(
          'Base URL of an OTLP collector (http), to which the telemetry of applications is forwarded with the identity of their users; absent: it is discarded.',
        ),
      ),
      telemetryHeaders: Type.Record(Type.String(), Type.String(), {
        description: 'Headers of requests to the collector.',
        default: {},
        secret: true,
      }),
      telemetryMs: whole('Timeout of a request to the collector.', {
        default: 5_000,
        minimum: 10,
      }),
      telemetryBytesMax: whole('Maximum size of an export of an application.', {
        default: 4_194_304,
        minimum: 1024,
      }),
    },
  ),
}

/** Rules of these keys beyond the schema. */
export function* appGatewayFaults({ appGateway: { telemetryUrl } }: Config): Generator<string> {
  if (telemetryUrl !== undefined && !isUrl(telemetryUrl, webProtocols)) {
    yield 'app_gateway.telemetry_url: must be an http or https URL without credentials.'
  }
}
