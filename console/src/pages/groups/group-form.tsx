import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Group } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { announce } from '../../ui/toasts.tsx'

type Permission = Group['permissions'][number]

const permissions: readonly Permission[] = [
  'can_access_api',
  'can_manage_models',
  'can_edit_config',
  'can_manage_groups',
]

export function GroupForm({
  group,
  onSaved,
  onClose,
}: {
  group: Group | null
  onSaved: () => void
  onClose: () => void
}) {
  const [name, setName] = useState(group?.name ?? '')
  const [description, setDescription] = useState(group?.description ?? '')
  const [claim, setClaim] = useState(group?.idp_claim ?? '')
  const [granted, setGranted] = useState<readonly Permission[]>(
    group?.permissions ?? ['can_access_api'],
  )
  const submit = async () => {
    const body = {
      description: description.trim(),
      permissions: [...granted],
      idp_claim: claim.trim() === '' ? null : claim.trim(),
    }
    if (group === null) await call('POST /v1/groups', { body: { name: name.trim(), ...body } })
    else await call('PATCH /v1/groups/{group_id}', { path: { group_id: group.id }, body })
    announce(text('groups.saved', { name: name.trim() }))
    onSaved()
  }
  return (
    <FormDialog
      title={group === null ? text('groups.create') : text('groups.edit', { name: group.name })}
      submit={text(group === null ? 'action.create' : 'action.save')}
      canSubmit={name.trim() !== ''}
      onSubmit={submit}
      onClose={onClose}
    >
      {group === null && (
        <TextField
          label={text('groups.name')}
          hint={text('groups.name_hint')}
          value={name}
          onValue={setName}
        />
      )}
      <TextField label={text('groups.description')} value={description} onValue={setDescription} />
      <TextField
        label={text('groups.claim')}
        hint={text('groups.claim_hint')}
        placeholder={name}
        value={claim}
        onValue={setClaim}
      />
      <fieldset class="group">
        <legend>{text('groups.permissions')}</legend>
        {permissions.map((permission) => (
          <Checkbox
            key={permission}
            label={text(`permission.${permission}`)}
            hint={text(`permission_hint.${permission}`)}
            checked={granted.includes(permission)}
            onChecked={(checked) =>
              setGranted(
                checked ? [...granted, permission] : granted.filter((one) => one !== permission),
              )
            }
          />
        ))}
      </fieldset>
    </FormDialog>
  )
}
