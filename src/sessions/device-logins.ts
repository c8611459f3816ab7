import { randomInt } from 'node:crypto'
import type { KeyWithSecret } from '#auth/api-keys.ts'
import type { Auth } from '#auth/auth.ts'
import { isRefusal } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import { createSessionSecret, hashSecret } from '#auth/session-cookie.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import type { Sealer } from '#sealing/sealer.ts'
import type { CodeStore, DeviceLogin } from './code-store.ts'

/** Consonants, so that no code is a word; 20^8 codes, of which few are valid at a time. */
const alphabet = 'BCDFGHJKLMNPQRSTVWXZ'
const userCodeChars = 8
const userCodeShape = new RegExp(`^[${alphabet}]{${userCodeChars}}$`)
export const deviceLoginS = 600
export const pollIntervalS = 5
/** Devices that wait, of all replicas; more are refused. */
const waitingMax = 1_000
const nameCharsMax = 80
const unnamed = 'command line'
/** A client whose response was lost may repeat a refresh; what runs with the replaced key goes on. */
const overlapS = 300
/** Refresh tokens are bound to no owner: the key inside names it. */
const anyOwner = 'device'

/** A key for a device; the refresh token is null where keys are not renewed. */
export type DeviceKey = KeyWithSecret & { readonly refreshToken: string | null }

/** The error codes of RFC 8628, 3.5. */
export type DeviceError =
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'invalid_grant'

export type DeviceLogins = ReturnType<typeof createDeviceLogins>

/** Logins of devices without a browser of their own (RFC 8628), which end in an API key. */
export function createDeviceLogins(deps: {
  store: Pick<CodeStore, 'addDevice' | 'findDevice' | 'decideDevice' | 'pollDevice'>
  auth: Pick<Auth, 'keys' | 'currentPrincipal' | 'authenticateToken'>
  sealer: Pick<Sealer, 'seal' | 'open'>
  config: Pick<Config, 'login'>
  now: () => Date
}) {
  const { store, auth, sealer, config, now } = deps

  const findHolder = async (userId: string) => {
    const holder = await auth.currentPrincipal({ userId, keyId: null }).catch(nullIfRefused)
    return holder?.permissions.has(basePermission) === true ? holder : null
  }
  const nextExpiry = () => new Date(now().getTime() + config.login.deviceKeyS * 1000)
  const withRefresh = (key: KeyWithSecret): DeviceKey => ({
    ...key,
    refreshToken:
      config.login.deviceRefreshS === 0 ? null : sealer.seal('refresh', anyOwner, key.key),
  })
  /** The key that a refresh token renews; null for any other text. */
  const openRefresh = (token: string): string | null => {
    try {
      return sealer.open('refresh', anyOwner, token)
    } catch (error) {
      if (error instanceof AppError && error.kind === 'invalid_encrypted_content') return null
      throw error
    }
  }

  async function createKey(userId: string, name: string, requestId: string) {
    const holder = await findHolder(userId)
    if (holder === null) return 'access_denied' as const
    const expiresAt = nextExpiry()
    const key = await auth.keys.create(
      { userId, keyId: null, requestId },
      { userId, subject: holder.subject, kind: 'user' },
      {
        name: `login: ${name}`,
        expiresAt,
        models: null,
        scopes: null,
        allowedIps: null,
        limits: null,
      },
    )
    return withRefresh(key)
  }

  return {
    /** The secret of the device, and what its user types. Throws `rate_limit_exceeded`. */
    async begin(name: string): Promise<{ deviceCode: string; userCode: string }> {
      const deviceCode = createSessionSecret()
      const userCode = createUserCode()
      const createdAt = now()
      const isAdded = await store.addDevice(
        {
          hash: hashSecret(deviceCode),
          userCode,
          name: readDeviceName(name),
          createdAt,
          expiresAt: new Date(createdAt.getTime() + deviceLoginS * 1000),
        },
        waitingMax,
      )
      if (!isAdded) {
        throw new AppError('rate_limit_exceeded', tooManyDevices, { retryAfterS: pollIntervalS })
      }
      return { deviceCode, userCode }
    },

    /** A login that waits or was just decided, by what its user typed. */
    async find(typed: string): Promise<DeviceLogin | undefined> {
      const userCode = readUserCode(typed)
      return userCode === null ? undefined : store.findDevice(userCode, now())
    },

    /** Undefined if no login waits under this code. */
    async decide(
      typed: string,
      decision: { userId: string; isApproved: boolean },
    ): Promise<DeviceLogin | undefined> {
      const userCode = readUserCode(typed)
      if (userCode === null) return undefined
      const status = decision.isApproved ? 'approved' : 'denied'
      return store.decideDevice(userCode, { status, userId: decision.userId, now: now() })
    },

    /**
     * Gives the key of a refresh token a new secret and a new expiry: it stays the same key for limits, usage and
     * audit. A token whose key was replaced before was copied, so the key is revoked.
     */
    async refresh(token: string, requestId: string): Promise<DeviceKey | 'invalid_grant'> {
      const key = config.login.deviceRefreshS === 0 ? null : openRefresh(token)
      const owner = key === null ? undefined : await auth.keys.ownerOf(key)
      if (owner === undefined) return 'invalid_grant'
      const { keyId, userId, expiresAt, isReplaced } = owner
      const actor = { userId, keyId, requestId }
      if (isReplaced) {
        await auth.keys.revoke(actor, { keyId, userId })
        return 'invalid_grant'
      }
      const endsAt = (expiresAt?.getTime() ?? 0) + config.login.deviceRefreshS * 1000
      if (expiresAt !== null && endsAt <= now().getTime()) return 'invalid_grant'
      if ((await findHolder(userId)) === null) return 'invalid_grant'
      const renewal = { overlapS, expiresAt: nextExpiry() }
      const renewed = await auth.keys.rotate(actor, { keyId, userId }, renewal)
      return renewed === undefined ? 'invalid_grant' : withRefresh(renewed)
    },

    /** Revokes an API key for its bearer, or for the bearer of its refresh token. Ignores other texts. */
    async revoke(token: string, requestId: string): Promise<void> {
      if (token === '') return
      const refreshed = openRefresh(token)
      if (refreshed !== null) {
        const owner = await auth.keys.ownerOf(refreshed)
        if (owner === undefined) return
        const { keyId, userId } = owner
        await auth.keys.revoke({ userId, keyId, requestId }, { keyId, userId })
        return
      }
      const holder = await auth.authenticateToken(token).catch(nullIfRefused)
      if (holder?.credential.kind !== 'api-key') return
      const { userId, credential } = holder
      const { keyId } = credential
      await auth.keys.revoke({ userId, keyId, requestId }, { keyId, userId })
    },

    /** The key of an approved login, once; until then why there is none. */
    async poll(deviceCode: string, requestId: string): Promise<DeviceKey | DeviceError> {
      const outcome = await store.pollDevice(
        hashSecret(deviceCode),
        now(),
        // A second of tolerance for clients that count the interval exactly.
        (pollIntervalS - 1) * 1000,
      )
      switch (outcome.kind) {
        case 'unknown':
          return 'invalid_grant'
        case 'expired':
          return 'expired_token'
        case 'pending':
          return 'authorization_pending'
        case 'too-soon':
          return 'slow_down'
        case 'denied':
          return 'access_denied'
        case 'approved':
          return createKey(outcome.userId, outcome.name, requestId)
      }
    },
  }
}

/** A user who was disabled since the approval. */
function nullIfRefused(error: unknown): null {
  if (isRefusal(error)) return null
  throw error
}

export const tooManyDevices = 'Too many devices wait for a login; try again in a few minutes.'

function createUserCode(): string {
  return Array.from({ length: userCodeChars }, () => alphabet[randomInt(alphabet.length)]).join('')
}

/** Without what people add: a hyphen, spaces, small letters. Null for no code at all. */
function readUserCode(typed: string): string | null {
  const code = typed.toUpperCase().replace(/[\s-]/g, '')
  return userCodeShape.test(code) ? code : null
}

/** `WDJBMJHT` → `WDJB-MJHT`. */
export function showUserCode(code: string): string {
  return `${code.slice(0, userCodeChars / 2)}-${code.slice(userCodeChars / 2)}`
}

/** On one line and short: the user who approves reads it. */
function readDeviceName(name: string): string {
  const line = name
    .replace(/[\p{Cc}\p{Cf}]/gu, ' ')
    .trim()
    .slice(0, nameCharsMax)
  return line === '' || !line.isWellFormed() ? unnamed : line
}
