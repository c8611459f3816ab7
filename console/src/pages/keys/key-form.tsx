import { useState } from 'preact/hooks'
import type { ApiKey, ApiKeyLimits } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Checkbox, SelectField, TextField } from '../../ui/field.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useAction } from '../../ui/query.ts'
import type { KeyChange } from './key-source.ts'

type Scope = NonNullable<ApiKey['scopes']>[number]
type LimitName = keyof ApiKeyLimits

const scopes: readonly Scope[] = ['inference', 'files', 'speech', 'admin']
const limitNames: readonly LimitName[] = [
  'requests_per_minute',
  'input_tokens_per_minute',
  'output_tokens_per_minute',
  'concurrent_generations',
]
const validDays = ['', '30', '90', '365'] as const
const dayMs = 86_400_000

const list = (value: string) => value.split(/[\s,]+/).filter(Boolean)

/** Creates a key, or changes one. Only the name is needed; all else narrows what the key can do. */
export function KeyForm({
  apiKey,
  onSave,
  onClose,
}: {
  apiKey: ApiKey | null
  onSave: (change: KeyChange) => Promise<void>
  onClose: () => void
}) {
  const [name, setName] = useState(apiKey?.name ?? '')
  const [days, setDays] = useState<string>(apiKey === null ? '90' : 'keep')
  const [models, setModels] = useState(apiKey?.models?.join(', ') ?? '')
  const [addresses, setAddresses] = useState(apiKey?.allowed_ips?.join(', ') ?? '')
  const [chosen, setChosen] = useState<readonly Scope[]>(apiKey?.scopes ?? [])
  const [limits, setLimits] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(
      Object.entries(apiKey?.limits ?? {}).map(([key, value]) => [key, `${value}`]),
    ),
  )
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const submit = () =>
    run(async () => {
      const given = Object.entries(limits).filter(([, value]) => value !== '')
      const numbers = Object.fromEntries(given.map(([key, value]) => [key, Number(value)]))
      try {
        await onSave({
          name: name.trim(),
          ...(days === 'keep' ? {} : { expires_at: expiryOf(days) }),
          models: models.trim() === '' ? null : list(models),
          scopes: chosen.length === 0 ? null : [...chosen],
          allowed_ips: addresses.trim() === '' ? null : list(addresses),
          limits: given.length === 0 ? null : numbers,
        })
      } catch (error) {
        setFault(error)
      }
    })
  const validities = apiKey === null ? validDays : (['keep', ...validDays] as const)
  return (
    <Dialog
      title={text(apiKey === null ? 'keys.create' : 'keys.edit', { name: apiKey?.name ?? '' })}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <Button onClick={onClose}>{text('action.cancel')}</Button>
          <Button kind="primary" type="submit" disabled={isBusy || name.trim() === ''}>
            {text(apiKey === null ? 'action.create' : 'action.save')}
          </Button>
        </>
      }
    >
      <TextField
        label={text('keys.name')}
        hint={text('keys.name_hint')}
        value={name}
        onValue={setName}
      />
      <SelectField
        label={text('keys.expires')}
        value={days}
        onValue={setDays}
        options={validities.map((value) => ({
          value,
          label: text(`keys.valid.${value === '' ? 'forever' : value}`),
        }))}
      />
      <fieldset class="group">
        <legend>{text('keys.scopes')}</legend>
        <p class="small muted">{text('keys.scopes_hint')}</p>
        <div class="pair">
          {scopes.map((scope) => (
            <Checkbox
              key={scope}
              label={text(`keys.scope.${scope}`)}
              checked={chosen.includes(scope)}
              onChecked={(checked) =>
                setChosen(checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))
              }
            />
          ))}
        </div>
      </fieldset>
      <details class="option" open={models !== '' || addresses !== '' || apiKey?.limits != null}>
        <summary>{text('keys.narrow')}</summary>
        <div class="stack">
          <TextField
            label={text('keys.models')}
            hint={text('keys.models_hint')}
            placeholder="gpt-*, demo"
            value={models}
            onValue={setModels}
          />
          <TextField
            label={text('keys.addresses')}
            hint={text('keys.addresses_hint')}
            placeholder="192.0.2.0/24"
            value={addresses}
            onValue={setAddresses}
          />
          <div class="pair">
            {limitNames.map((limit) => (
              <TextField
                key={limit}
                type="number"
                min={0}
                label={text(`limit.${limit}`)}
                placeholder={text('keys.unlimited')}
                value={limits[limit] ?? ''}
                onValue={(value) => setLimits({ ...limits, [limit]: value })}
              />
            ))}
          </div>
        </div>
      </details>
      {fault !== undefined && <Fault error={fault} />}
    </Dialog>
  )
}

function expiryOf(days: string): string | null {
  return days === '' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString()
}
