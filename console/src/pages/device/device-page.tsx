import { useState } from 'preact/hooks'
import { call, type ResponseOf } from '../../api/call.ts'
import { place, setQuery } from '../../shell/router.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Fault, Notice } from '../../ui/notice.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { useAction, useQuery } from '../../ui/query.ts'

type DeviceLogin = ResponseOf<'GET /v1/device-logins/{code}'>

/** Approves the login of a command line, which shows a code. */
export function DevicePage() {
  const code = place.value.query.get('user_code')
  return (
    <Page title={text('device.title')} about={text('device.about')}>
      {code === null ? <CodeForm /> : <Login key={code} code={code} />}
    </Page>
  )
}

function CodeForm() {
  const [typed, setTyped] = useState('')
  return (
    <Card title={text('device.code')}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          setQuery('user_code', typed.trim())
        }}
      >
        <TextField
          label={text('device.code')}
          hint={text('device.code_hint')}
          placeholder="WDJB-MJHT"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onValue={setTyped}
        />
        <div class="row">
          <Button kind="primary" type="submit" disabled={typed.trim() === ''}>
            {text('device.continue')}
          </Button>
        </div>
      </form>
    </Card>
  )
}

function Login({ code }: { code: string }) {
  const query = useQuery(
    (signal) => call('GET /v1/device-logins/{code}', { path: { code }, signal }),
    code,
  )
  const [decided, setDecided] = useState<DeviceLogin>()
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const decide = (approve: boolean) =>
    run(async () => {
      try {
        setDecided(
          await call('POST /v1/device-logins/{code}', { path: { code }, body: { approve } }),
        )
      } catch (error) {
        setFault(error)
      }
    })
  if (query.error !== undefined) {
    return (
      <div class="stack">
        <Fault error={query.error} />
        <CodeForm />
      </div>
    )
  }
  const login = decided ?? query.data
  if (login === undefined) return null
  if (login.status !== 'pending') {
    const isApproved = login.status === 'approved'
    return (
      <Notice kind={isApproved ? 'info' : 'warn'}>
        <strong role="status">{text(isApproved ? 'device.approved' : 'device.denied')}</strong>
        <p>{text('device.close')}</p>
      </Notice>
    )
  }
  return (
    <Card title={text('device.question', { name: login.name })}>
      <div class="stack">
        <p>
          {text('device.compare')} <strong class="mono">{login.user_code}</strong>
        </p>
        <Notice kind="warn">
          <p>{text('device.warning')}</p>
        </Notice>
        {fault !== undefined && <Fault error={fault} />}
        <div class="row">
          <Button kind="primary" disabled={isBusy} onClick={() => void decide(true)}>
            {text('device.approve')}
          </Button>
          <Button disabled={isBusy} onClick={() => void decide(false)}>
            {text('device.deny')}
          </Button>
        </div>
      </div>
    </Card>
  )
}
