import type { Config } from '#config/schema.ts'
import { readRawBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Log } from '#telemetry/log.ts'
import { attributePrefix, type Identity, identifyJson, identifyProtobuf } from './otlp-identity.ts'

export type TelemetryDeps = {
  config: Pick<Config, 'appGateway' | 'files'>
  fetch: typeof fetch
  log: Pick<Log, 'warn'>
}

export type Signal = 'metrics' | 'logs' | 'traces'

/** Exports that are forwarded at a time by a worker; more are refused, and sent again by their clients. */
const forwardingMax = 64
const jsonMediaType = 'application/json'

/** Forwards exports of applications, with the user that the credential names. */
export function createTelemetry(deps: TelemetryDeps) {
  const { config, log } = deps
  let forwarding = 0

  async function forward(url: string, body: Uint8Array | string, type: string): Promise<void> {
    const { telemetryHeaders, telemetryMs } = config.appGateway
    const response = await deps.fetch(url, {
      method: 'POST',
      headers: { ...telemetryHeaders, 'content-type': type },
      body,
      signal: AbortSignal.timeout(telemetryMs),
      redirect: 'error',
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the collector answered ${response.status}`)
  }

  /** Throws `service_unavailable`, after which exporters repeat the export. */
  return async (signal: Signal, request: Request, context: RequestContext): Promise<void> => {
    const { telemetryUrl, telemetryBytesMax: requestBytesMax } = config.appGateway
    const { uploadGapMs: gapMs, uploadMs: totalMs } = config.files
    const bytes = await readRawBody(request, { requestBytesMax, gapMs, totalMs })
    if (telemetryUrl === undefined) return
    if (forwarding >= forwardingMax) throw unavailable()
    forwarding++
    try {
      const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
      const isJson = type === jsonMediaType
      const identity = identityOf(context)
      const body = isJson
        ? JSON.stringify(identifyJson(parseBody(bytes), identity))
        : identifyProtobuf(bytes, identity)
      const url = `${telemetryUrl.replace(/\/+$/, '')}/v1/${signal}`
      await forward(url, body, isJson ? jsonMediaType : 'application/x-protobuf')
    } catch (error) {
      if (error instanceof AppError) throw error
      log.warn('telemetry of an application was not forwarded', { signal, error })
      throw unavailable(error)
    } finally {
      forwarding--
    }
  }
}

function identityOf({ principal, keyId }: RequestContext): Identity {
  return {
    [`${attributePrefix}user.id`]: principal.userId,
    [`${attributePrefix}user.groups`]: principal.groups.join(','),
    ...(keyId === null ? {} : { [`${attributePrefix}key.id`]: keyId }),
  }
}

function parseBody(bytes: Uint8Array): JsonObject {
  const body = parseJson(new TextDecoder().decode(bytes))
  if (isRecord(body)) return body
  throw new AppError('malformed_json', 'The request body is no JSON object.')
}

function unavailable(cause?: unknown): AppError {
  return new AppError('service_unavailable', 'The telemetry collector is unavailable; retry.', {
    retryAfterS: 5,
    cause,
  })
}
