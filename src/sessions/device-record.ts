import { type Static, Type } from '@sinclair/typebox'
import { json } from '#api/endpoint.ts'
import { oneOf } from '#api/request-schema.ts'
import { instant, instantExample } from '#api/shapes.ts'
import type { DeviceLogin } from './code-store.ts'
import { type DeviceError, deviceLoginS, pollIntervalS, showUserCode } from './device-logins.ts'

/** The wire types of the login of devices. */

export const grantType = 'urn:ietf:params:oauth:grant-type:device_code'
export const refreshGrantType = 'refresh_token'
export const formType = 'application/x-www-form-urlencoded'
export const noLogin = 'No device waits under this code; it may have expired.'
export const codeParam = { code: 'What the device shows; hyphens and the case do not matter.' }

export const deviceRequest = Type.Object({
  client_id: Type.Optional(Type.String({ description: 'Ignored.' })),
  device_name: Type.Optional(Type.String({ description: 'Shown to the user who approves.' })),
})

export const deviceAuthorization = Type.Object(
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
export const authorizationExample = {
  device_code: 'GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS5d',
  user_code: 'WDJB-MJHT',
  verification_uri: 'https://gateway.example.org/console/device',
  verification_uri_complete: 'https://gateway.example.org/console/device?user_code=WDJB-MJHT',
  expires_in: deviceLoginS,
  interval: pollIntervalS,
}

export const tokenRequest = Type.Object({
  grant_type: oneOf([grantType, refreshGrantType], 'What the device has.'),
  device_code: Type.Optional(Type.String()),
  refresh_token: Type.Optional(Type.String()),
  client_id: Type.Optional(Type.String({ description: 'Ignored.' })),
})

export const nothing = Type.Object({})

export const revocationRequest = Type.Object({
  token: Type.String({ description: 'The API key, or its refresh token.' }),
  token_type_hint: Type.Optional(Type.String({ description: 'Ignored.' })),
})

export const deviceToken = Type.Object(
  {
    access_token: Type.String({ description: 'An API key.' }),
    token_type: Type.Literal('Bearer'),
    key_id: Type.String({ format: 'uuid' }),
    expires_at: Type.Union([instant('When the key expires'), Type.Null()]),
    expires_in: Type.Optional(Type.Integer({ description: 'Seconds until then.' })),
    refresh_token: Type.Optional(
      Type.String({ description: 'Renews the key once, also for some time after its expiry.' }),
    ),
  },
  { $id: 'DeviceToken' },
)
export const tokenExample = {
  access_token: 'sk-svc-v1-…',
  token_type: 'Bearer',
  key_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60',
  expires_at: instantExample,
  expires_in: 7_776_000,
  refresh_token: 'sluice1.…',
}

const failures: Readonly<Record<DeviceError | 'unsupported_grant_type', string>> = {
  authorization_pending: 'The user has not decided yet.',
  slow_down: 'Wait longer between two polls.',
  access_denied: 'The user denied the login, or may not use the API.',
  expired_token: 'The code has expired; begin again.',
  invalid_grant: 'The code or refresh token is unknown, expired or was used; begin again.',
  unsupported_grant_type: `grant_type must be ${grantType} or ${refreshGrantType}.`,
}
export type Failure = keyof typeof failures

/** The error body of OAuth (RFC 6749, 5.2). */
export const deviceFailure = Type.Object(
  {
    error: oneOf(Object.keys(failures), 'For a program.'),
    error_description: Type.String({ description: 'For a person.' }),
  },
  { $id: 'DeviceError' },
)

export function describeFailure(error: Failure) {
  return { error, error_description: failures[error] }
}

export const deviceLogin = Type.Object(
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
export const deviceResponse = {
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

export const decision = Type.Object(
  { approve: Type.Boolean({ description: 'Whether the device gets a key.' }) },
  { additionalProperties: false },
)

export function renderDeviceLogin(login: DeviceLogin): Static<typeof deviceLogin> {
  return {
    object: 'device_login',
    user_code: showUserCode(login.userCode),
    name: login.name,
    status: login.status,
    requested_at: login.createdAt.toISOString(),
    expires_at: login.expiresAt.toISOString(),
  }
}
