import { useState } from 'preact/hooks'
import { ApiError } from '../api/errors.ts'
import { place } from '../shell/router.ts'
import { theme } from '../shell/theme.ts'
import { type TextKey, text } from '../texts/texts.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Fault, Notice } from '../ui/notice.tsx'
import { useAction } from '../ui/query.ts'
import {
  createSession,
  hasExpired,
  keepToken,
  logInAtProvider,
  loginFault,
  ways,
} from './session.ts'

/** What the callback of the identity provider reports as `?error=`. */
const providerFaults: Readonly<Record<string, TextKey>> = {
  login_denied: 'login.fault.login_denied',
  login_expired: 'login.fault.login_expired',
  login_failed: 'login.fault.login_failed',
  provider_unreachable: 'login.fault.provider_unreachable',
  user_disabled: 'login.fault.user_disabled',
}

export function Login() {
  const product = theme.value?.product_name ?? 'Sluice'
  const { oidc, token: allowsToken } = ways.value
  const reported = place.value.query.get('error')
  const providerFault = reported === null ? undefined : providerFaults[reported]
  return (
    <main class="login">
      <div class="login-card">
        <Gate />
        <div>
          <h1>{text('login.title', { product })}</h1>
          <p class="muted">{text('login.explain')}</p>
        </div>
        {hasExpired.value && <Notice>{text('login.expired')}</Notice>}
        {loginFault.value !== null && <Fault error={loginFault.value} />}
        {reported !== null && (
          <Notice kind="bad">{text(providerFault ?? 'login.fault.login_failed')}</Notice>
        )}
        {oidc && (
          <Button kind="primary" onClick={logInAtProvider}>
            {text('login.provider')}
          </Button>
        )}
        {oidc && allowsToken && <p class="muted small">{text('login.or')}</p>}
        {allowsToken && <TokenForm isMain={!oidc} />}
      </div>
    </main>
  )
}

function TokenForm({ isMain }: { isMain: boolean }) {
  const [token, setToken] = useState('')
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const submit = async (event: Event) => {
    event.preventDefault()
    const value = token.trim().replace(/^Bearer /, '')
    if (value === '') return setFault(new Error(text('login.token_missing')))
    await run(async () => {
      try {
        await createSession({ token: value }).catch((error: unknown) => {
          // A gateway without sessions, or a key, which never becomes one.
          if (isSessionRefused(error, value)) return keepToken(value)
          throw error
        })
      } catch (error) {
        setFault(error)
      }
    })
  }
  return (
    <form class="stack" onSubmit={submit}>
      <TextField
        label={text('login.token')}
        hint={text('login.hint')}
        fault={
          fault === undefined || fault instanceof ApiError ? null : String((fault as Error).message)
        }
        type="password"
        autocomplete="off"
        spellcheck={false}
        value={token}
        onValue={setToken}
      />
      {fault instanceof ApiError && <Fault error={fault} />}
      <div>
        <Button kind={isMain ? 'primary' : 'plain'} type="submit" disabled={isBusy}>
          {text('login.submit')}
        </Button>
      </div>
    </form>
  )
}

function isSessionRefused(error: unknown, token: string): boolean {
  return error instanceof ApiError && (error.status === 404 || token.startsWith('sk-svc-'))
}

/** The default logo, before the brand's is known. */
function Gate() {
  return (
    <svg class="gate" viewBox="0 0 64 64" aria-hidden="true" fill="var(--accent)">
      <path d="M6 8h10v48H6zM48 8h10v48H48zM16 8h32v14H16z" />
      <path
        fill="none"
        stroke="var(--accent)"
        stroke-width="4"
        stroke-linecap="round"
        d="M20 34q6-6 12 0t12 0M20 48q6-6 12 0t12 0"
      />
    </svg>
  )
}
