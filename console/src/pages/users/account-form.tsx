import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { User } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useAction, useQuery } from '../../ui/query.ts'
import { announce } from '../../ui/toasts.tsx'

/** A service account: a user without a person, which has keys only. */
export function AccountForm({
  onCreated,
  onClose,
}: {
  onCreated: (account: User) => void
  onClose: () => void
}) {
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState<readonly string[]>([])
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const groups = useQuery(
    (signal) => call('GET /v1/groups', { query: { limit: 100 }, signal }),
    'groups',
  )
  const submit = () =>
    run(async () => {
      try {
        const body = { name: name.trim(), groups: [...chosen] }
        const account = await call('POST /v1/service-accounts', { body })
        announce(text('users.account_created', { name: body.name }))
        onCreated(account)
      } catch (error) {
        setFault(error)
      }
    })
  return (
    <Dialog
      title={text('users.create_account')}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <Button onClick={onClose}>{text('action.cancel')}</Button>
          <Button kind="primary" type="submit" disabled={isBusy || name.trim() === ''}>
            {text('action.create')}
          </Button>
        </>
      }
    >
      <p class="muted">{text('users.account_hint')}</p>
      <TextField label={text('users.account_name')} value={name} onValue={setName} />
      <fieldset class="group">
        <legend>{text('users.groups')}</legend>
        {(groups.data?.data ?? []).map(({ id, name: group, description }) => (
          <Checkbox
            key={id}
            label={group}
            hint={description}
            checked={chosen.includes(id)}
            onChecked={(checked) =>
              setChosen(checked ? [...chosen, id] : chosen.filter((one) => one !== id))
            }
          />
        ))}
      </fieldset>
      {fault !== undefined && <Fault error={fault} />}
    </Dialog>
  )
}
