import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { User } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { useQuery } from '../../ui/query.ts'
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
  const groups = useQuery(
    (signal) => call('GET /v1/groups', { query: { limit: 100 }, signal }),
    'groups',
  )
  const submit = async () => {
    const body = { name: name.trim(), groups: [...chosen] }
    const account = await call('POST /v1/service-accounts', { body })
    announce(text('users.account_created', { name: body.name }))
    onCreated(account)
  }
  return (
    <FormDialog
      title={text('users.create_account')}
      submit={text('action.create')}
      canSubmit={name.trim() !== ''}
      onSubmit={submit}
      onClose={onClose}
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
    </FormDialog>
  )
}
