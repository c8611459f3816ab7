import { useState } from 'preact/hooks'
import { TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'

/** Asks for a name. */
export function NameDialog({
  title,
  label,
  submit,
  initial = '',
  onName,
  onClose,
}: {
  title: string
  label: string
  submit: string
  initial?: string
  onName: (name: string) => Promise<unknown>
  onClose: () => void
}) {
  const [name, setName] = useState(initial)
  const trimmed = name.trim()
  return (
    <FormDialog
      title={title}
      submit={submit}
      canSubmit={trimmed !== '' && trimmed !== initial}
      onSubmit={() => onName(trimmed)}
      onClose={onClose}
    >
      <TextField label={label} value={name} onValue={setName} autocomplete="off" />
    </FormDialog>
  )
}
