import { text } from '../texts/texts.ts'
import { SelectField, TextField } from '../ui/field.tsx'
import { chooseVoice, chosenVoice, speakers } from './voices.ts'

const speeds = [0.5, 0.75, 1, 1.25, 1.5, 2] as const

/** Which model speaks, as whom, and how fast. */
export function VoiceFields() {
  const chosen = chosenVoice.value
  if (chosen === null) return null
  const { voices } = speakers.value.find(({ id }) => id === chosen.model) ?? {}
  return (
    <>
      {speakers.value.length > 1 && (
        <SelectField
          label={text('voice.model')}
          value={chosen.model}
          onValue={(model) => chooseVoice({ model })}
          options={speakers.value.map(({ id }) => ({ value: id, label: id }))}
        />
      )}
      <div class="pair">
        {voices === undefined ? (
          <TextField
            label={text('voice.voice')}
            value={chosen.voice}
            onValue={(voice) => chooseVoice({ voice })}
          />
        ) : (
          <SelectField
            label={text('voice.voice')}
            value={chosen.voice}
            onValue={(voice) => chooseVoice({ voice })}
            options={voices.map((value) => ({ value, label: value }))}
          />
        )}
        <SelectField
          label={text('voice.speed')}
          value={String(chosen.speed)}
          onValue={(speed) => chooseVoice({ speed: Number(speed) })}
          options={speeds.map((value) => ({ value: String(value), label: `${value} ×` }))}
        />
      </div>
    </>
  )
}
