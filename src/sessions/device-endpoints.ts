import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody, rawBody } from '#api/endpoint.ts'
import { oneOf } from '#api/request-schema.ts'
import { instant, instantExample } from '#api/shapes.ts'
import type { Auth } from '#auth/auth.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { createAttemptLimit, tooManyAttempts } from './attempt-limit.ts'
import { insecure, requireSafeOrigin } from './browser-login.ts'
import type { DeviceLogin } from './code-store.ts'
import {
  type DeviceError,
  type DeviceLogins,
  deviceLoginS,
  pollIntervalS,
  showUserCode,
  tooManyDevices,
} from './device-logins.ts'
import { readForm } from './form.ts'

export type DeviceEndpointsDeps = {
  devices: DeviceLogins
  auth: Pick<Auth, 'originOf' | 'addressOf'>
  config: Pick<Config, 'login'>
  now: () => Date
}

/** Logins that an address may begin. */
const begunMax = 20
/** Codes that a user may mistype. */
const mistypedMax = 10
const windowMs = 600_000
const grantType = 'urn:ietf:params:oauth:grant-type:device_code'

/** The login of devices without a browser: RFC 8628 for the device, and the page that approves it. */
export function deviceEndpoints(deps: DeviceEndpointsDeps): Endpoint[] {
  const { devices, auth, now } = deps
  const begun = createAttemptLimit({ attemptsMax: begunMax, windowMs, now })
  const mistyped = createAttemptLimit({ attemptsMax: mistypedMax, windowMs, now })

  async function found(
    userId: string,
    work: Promise<DeviceLogin | undefined>,
  ): Promise<Static<typeof deviceLogin>> {
    const login = await work
    if (login !== undefined) return renderDeviceLogin(login)
    mistyped.count(userId)
    throw new AppError('not_found', noLogin)
  }

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
        begun.check(client)
        begun.count(client)
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
        'Device access token (RFC 8628, 3.4), with its error codes. The code works once: the response has the key, which is not stored.',
      body: rawBody({ [formType]: { schema: tokenRequest } }),
      responses: {
        200: { description: 'The key.', content: json(deviceToken, tokenExample) },
        400: {
          description: 'No key yet, or none at all.',
          content: json(deviceFailure, describeFailure('authorization_pending')),
        },
      },
      async handle({ request, context, set }) {
        const form = await readForm(request)
        set.headers['cache-control'] = 'no-store'
        if (form.get('grant_type') !== grantType) return fail('unsupported_grant_type')
        const result = await devices.poll(form.get('device_code') ?? '', context.requestId)
        if (typeof result === 'string') return fail(result)
        const { key, id, expiresAt } = result
        return {
          access_token: key,
          token_type: 'Bearer',
          key_id: id,
          expires_at: expiresAt?.toISOString() ?? null,
        }
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
        mistyped.check(principal.userId)
        return found(principal.userId, devices.find(code))
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
        mistyped.check(userId)
        return found(userId, devices.decide(code, { userId, isApproved: body.approve }))
      },
    }),
  ]
}

const formType = 'application/x-www-form-urlencoded'
const noLogin = 'No device waits under this code; it may have expired.'
const codeParam = { code: 'What the device shows; hyphens and the case do not matter.' }

const deviceRequest = Type.Object({
  client_id: Type.Optional(Type.String({ description: 'Ignored.' })),
  device_name: Type.Optional(Type.String({ description: 'Shown to the user who approves.' })),
})

const deviceAuthorization = Type.Object(
  {
    device_code: Type.String({ description: 'The secret of the device.' }),
    user_code: Type.String({ description: 'What the user compares or types.' }),
    verification_uri: Type.String(),
    verification_uri_complete: Type.String({ description: 'With the code.' }),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    interval: Type.Integer({ description: 'Seconds between two polls.' }),
  },
  { $id: 'DeviceAuthorization' },
)
const authorizationExample = {
  device_code: 'GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS5d',
  user_code: 'WDJB-MJHT',
  verification_uri: 'https://gateway.example.org/console/device',
  verification_uri_complete: 'https://gateway.example.org/console/device?user_code=WDJB-MJHT',
  expires_in: deviceLoginS,
  interval: pollIntervalS,
}

const tokenRequest = Type.Object({
  grant_type: Type.Literal(grantType),
  device_code: Type.String(),
  client_id: Type.Optional(Type.String({ description: 'Ignored.' })),
})

const deviceToken = Type.Object(
  {
    access_token: Type.String({ description: 'An API key.' }),
    token_type: Type.Literal('Bearer'),
    key_id: Type.String({ format: 'uuid' }),
    expires_at: Type.Union([instant('When the key expires'), Type.Null()]),
  },
  { $id: 'DeviceToken' },
)
const tokenExample = {
  access_token: 'sk-svc-v1-…',
  token_type: 'Bearer',
  key_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60',
  expires_at: instantExample,
}

const failures: Readonly<Record<DeviceError | 'unsupported_grant_type', string>> = {
  authorization_pending: 'The user has not decided yet.',
  slow_down: 'Wait longer between two polls.',
  access_denied: 'The user denied the login, or may not use the API.',
  expired_token: 'The code has expired; begin again.',
  invalid_grant: 'The device code is unknown, or was used.',
  unsupported_grant_type: `grant_type must be ${grantType}.`,
}
type Failure = keyof typeof failures

/** The error body of OAuth (RFC 6749, 5.2). */
const deviceFailure = Type.Object(
  {
    error: oneOf(Object.keys(failures), 'For a program.'),
    error_description: Type.String({ description: 'For a person.' }),
  },
  { $id: 'DeviceError' },
)

function describeFailure(error: Failure) {
  return { error, error_description: failures[error] }
}

function fail(error: Failure): Response {
  const headers = { 'cache-control': 'no-store' }
  return Response.json(describeFailure(error), { status: 400, headers })
}

const deviceLogin = Type.Object(
  {
    object: Type.Literal('device_login'),
    user_code: Type.String(),
    name: Type.String({ description: 'What the device called itself.' }),
    status: oneOf(['pending', 'approved', 'denied'], 'The decision.'),
    requested_at: instant('When the device asked'),
    expires_at: instant('Until when it can be approved'),
  },
  { $id: 'DeviceLogin' },
)
const deviceResponse = {
  description: 'The login.',
  content: json(deviceLogin, {
    object: 'device_login',
    user_code: 'WDJB-MJHT',
    name: 'ann@laptop',
    status: 'pending',
    requested_at: instantExample,
    expires_at: '2026-11-21T09:40:00.000Z',
  }),
}

const decision = Type.Object(
  { approve: Type.Boolean({ description: 'Whether the device gets a key.' }) },
  { additionalProperties: false },
)

function renderDeviceLogin(login: DeviceLogin): Static<typeof deviceLogin> {
  return {
    object: 'device_login',
    user_code: showUserCode(login.userCode),
    name: login.name,
    status: login.status,
    requested_at: login.createdAt.toISOString(),
    expires_at: login.expiresAt.toISOString(),
  }
}
