import type { Static } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody, rawBody } from '#api/endpoint.ts'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { createAttemptLimit, tooManyAttempts } from './attempt-limit.ts'
import type { AttemptStore } from './attempt-store.ts'
import { insecure, requireSafeOrigin } from './browser-login.ts'
import type { DeviceLogin } from './code-store.ts'
import {
  type DeviceKey,
  type DeviceLogins,
  deviceLoginS,
  pollIntervalS,
  showUserCode,
  tooManyDevices,
} from './device-logins.ts'
import {
  authorizationExample,
  codeParam,
  decision,
  describeFailure,
  deviceAuthorization,
  deviceFailure,
  type deviceLogin,
  deviceRequest,
  deviceResponse,
  deviceToken,
  type Failure,
  formType,
  grantType,
  noLogin,
  nothing,
  refreshGrantType,
  renderDeviceLogin,
  revocationRequest,
  tokenExample,
  tokenRequest,
} from './device-record.ts'
import { readForm } from './form.ts'

export type DeviceEndpointsDeps = {
  devices: DeviceLogins
  attemptStore: AttemptStore
  auth: Pick<Auth, 'originOf' | 'addressOf'>
  config: Pick<Config, 'login'>
  now: () => Date
}

/** Logins that an address may begin. */
const begunMax = 20
/** Codes that a user may mistype. */
const mistypedMax = 10
const windowMs = 600_000

/** The login of devices without a browser: RFC 8628 for the device, and the page that approves it. */
export function deviceEndpoints(deps: DeviceEndpointsDeps): Endpoint[] {
  const { devices, auth, attemptStore, now } = deps
  const limit = (kind: string, attemptsMax: number) =>
    createAttemptLimit({ store: attemptStore, kind, attemptsMax, windowMs })
  const begun = limit('device', begunMax)
  const mistyped = limit('code', mistypedMax)

  const renderToken = ({ key, id, expiresAt, refreshToken }: DeviceKey) => ({
    access_token: key,
    token_type: 'Bearer' as const,
    key_id: id,
    expires_at: expiresAt?.toISOString() ?? null,
    ...(expiresAt === null ? {} : { expires_in: secondsUntil(expiresAt, now()) }),
    ...(refreshToken === null ? {} : { refresh_token: refreshToken }),
  })

  const found = (
    userId: string,
    find: () => Promise<DeviceLogin | undefined>,
  ): Promise<Static<typeof deviceLogin>> =>
    mistyped.attempt(userId, async () => {
      const login = await find()
      if (login === undefined) throw new AppError('not_found', noLogin)
      return renderDeviceLogin(login)
    })

  return [
    endpoint({
      method: 'POST',
      path: '/login/device',
      permission: 'public',
      tag: 'Sessions',
      summary: 'Begin the login of a device',
      description:
        'Device authorization (RFC 8628, 3.1). The user opens `verification_uri` in any browser and confirms `user_code`; meanwhile the device polls `/login/device/token`.',
      body: rawBody({ [formType]: { schema: deviceRequest } }),
      responses: {
        200: {
          description: 'The codes.',
          content: json(deviceAuthorization, authorizationExample),
        },
      },
      errors: {
        unsupported_media_type: 'The body must be a form (application/x-www-form-urlencoded).',
        permission_denied: { code: 'https_required', message: insecure },
        rate_limit_exceeded: [tooManyDevices, tooManyAttempts],
      },
      async handle({ request, set, server }) {
        const origin = requireSafeOrigin(deps, request, server)
        const client = auth.addressOf(request, server)
        await begun.take(client)
        const form = await readForm(request)
        const { deviceCode, userCode } = await devices.begin(form.get('device_name') ?? '')
        const page = `${origin}/console/device`
        set.headers['cache-control'] = 'no-store'
        return {
          device_code: deviceCode,
          user_code: showUserCode(userCode),
          verification_uri: page,
          verification_uri_complete: `${page}?user_code=${showUserCode(userCode)}`,
          expires_in: deviceLoginS,
          interval: pollIntervalS,
        } satisfies Static<typeof deviceAuthorization>
      },
    }),

    endpoint({
      method: 'POST',
      path: '/login/device/token',
      permission: 'public',
      tag: 'Sessions',
      summary: 'Get the API key of an approved device',
      description:
        'Device access token (RFC 8628, 3.4), with its error codes. The code works once: the response has the key, which is not stored. `grant_type=refresh_token` (RFC 6749, 6) renews a key: it keeps its id, and gets a new secret, expiry and refresh token.',
      body: rawBody({ [formType]: { schema: tokenRequest } }),
      responses: {
        200: { description: 'The key.', content: json(deviceToken, tokenExample) },
        400: {
          description: 'No key yet, or none at all.',
          content: json(deviceFailure, describeFailure('authorization_pending')),
        },
        401: {
          description: 'The refresh token does not work; log in again.',
          content: json(deviceFailure, describeFailure('invalid_grant')),
        },
      },
      async handle({ request, context, set }) {
        const form = await readForm(request)
        set.headers['cache-control'] = 'no-store'
        if (form.get('grant_type') === refreshGrantType) {
          const refreshed = await devices.refresh(
            form.get('refresh_token') ?? '',
            context.requestId,
          )
          return refreshed === 'invalid_grant' ? fail(refreshed, 401) : renderToken(refreshed)
        }
        if (form.get('grant_type') !== grantType) return fail('unsupported_grant_type')
        const result = await devices.poll(form.get('device_code') ?? '', context.requestId)
        return typeof result === 'string' ? fail(result) : renderToken(result)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/login/device/revoke',
      permission: 'public',
      tag: 'Sessions',
      summary: 'Revoke the API key of a device',
      description:
        'Token revocation (RFC 7009) of a key or its refresh token, as a device does when it logs out. An unknown token is no error.',
      body: rawBody({ [formType]: { schema: revocationRequest } }),
      responses: { 200: { description: 'The key does not work.', content: json(nothing, {}) } },
      errors: {
        unsupported_media_type: 'The body must be a form (application/x-www-form-urlencoded).',
        service_unavailable: 'The database is temporarily unavailable; retry.',
      },
      async handle({ request, context, set }) {
        const form = await readForm(request)
        set.headers['cache-control'] = 'no-store'
        await devices.revoke(form.get('token') ?? '', context.requestId)
        return {}
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/device-logins/:code',
      permission: 'can_access_api',
      tag: 'Sessions',
      summary: 'Show the login of a device',
      description: 'For the user who approves it. Show `name`, and warn of codes from strangers.',
      params: codeParam,
      responses: { 200: deviceResponse },
      errors: { not_found: noLogin, rate_limit_exceeded: tooManyAttempts },
      handle({ params: { code }, context: { principal } }) {
        return found(principal.userId, () => devices.find(code))
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/device-logins/:code',
      permission: 'can_access_api',
      credential: 'jwt',
      tag: 'Sessions',
      summary: 'Approve or deny the login of a device',
      description:
        'Requires a JWT or a session. An approved device gets an API key of yours, which `login.device_key_s` limits.',
      params: codeParam,
      body: jsonBody(decision, { example: { approve: true } }),
      responses: { 200: deviceResponse },
      errors: { not_found: noLogin, rate_limit_exceeded: tooManyAttempts },
      handle({ params: { code }, body, context: { principal } }) {
        const { userId } = principal
        return found(userId, () => devices.decide(code, { userId, isApproved: body.approve }))
      },
    }),
  ]
}

function fail(error: Failure, status = 400): Response {
  const headers = { 'cache-control': 'no-store' }
  return Response.json(describeFailure(error), { status, headers })
}

function secondsUntil(end: Date, now: Date): number {
  return Math.max(0, Math.floor((end.getTime() - now.getTime()) / 1_000))
}
