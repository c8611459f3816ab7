export const device = {
  'device.about': 'Ein Programm auf der Kommandozeile bittet um einen API-Schlüssel von Ihnen.',
  'device.approve': 'Zulassen',
  'device.approved': 'Zugelassen. Die Kommandozeile erhält jetzt ihren Schlüssel.',
  'device.close': 'Sie können diese Seite schließen.',
  'device.code': 'Code',
  'device.code_hint': 'Die Kommandozeile zeigt ihn an.',
  'device.compare': 'Nur zulassen, wenn Ihre Kommandozeile denselben Code zeigt:',
  'device.continue': 'Weiter',
  'device.denied': 'Abgelehnt. Die Kommandozeile erhält keinen Schlüssel.',
  'device.deny': 'Ablehnen',
  'device.question': '{name} anmelden?',
  'device.title': 'Kommandozeile anmelden',
  'device.warning':
    'Lassen Sie nie einen Code zu, den Ihnen jemand geschickt hat: Der Schlüssel gäbe ihm Ihre Rechte.',
}
