{{- define "restamp.name" -}}
{{- with .Values.fullnameOverride -}}
{{ . | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ (contains "restamp" .Release.Name | ternary .Release.Name (printf "%s-restamp" .Release.Name)) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "restamp.account" -}}
{{ .Values.serviceAccount.name | default (include "restamp.name" .) }}
{{- end -}}

{{- define "restamp.selector" -}}
app.kubernetes.io/name: restamp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "restamp.labels" -}}
{{ include "restamp.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "restamp.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{ .Values.image.repository }}:{{ $tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- /* The port of --bind. */ -}}
{{- define "restamp.port" -}}
{{ .Values.run.bind | default "0.0.0.0:8080" | regexFind "[0-9]+$" }}
{{- end -}}

{{- /* A choice in words: in YAML, a bare `off` is `false`, and `on` is `true`. */ -}}
{{- define "restamp.word" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{- /* What the flags lead to, as "true" or nothing. */ -}}
{{- define "restamp.reloads" -}}
{{- if ne (include "restamp.word" .Values.run.reload) "off" }}true{{ end -}}
{{- end -}}
{{- define "restamp.stamps" -}}
{{- if and (include "restamp.reloads" .) (not .Values.run.dryRun) }}true{{ end -}}
{{- end -}}
{{- define "restamp.reportsDrift" -}}
{{- if ne (include "restamp.word" .Values.run.drift) "off" }}true{{ end -}}
{{- end -}}

{{- /* The arguments of the container: each flag that is set, under its name. */ -}}
{{- define "restamp.arguments" -}}
- run
{{- range $name, $value := .Values.run }}
{{- $flag := printf "--%s" (kebabcase $name) }}
{{- if has $name (list "reload" "drift") }}
{{- with include "restamp.word" $value }}
- {{ printf "%s=%s" $flag . }}
{{- end }}
{{- else if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "%s=%s" $flag (kindIs "map" . | ternary (get (kindIs "map" . | ternary . dict) "kind") .) | quote }}
{{- end }}
{{- else if kindIs "bool" $value }}
{{- if $value }}
- {{ $flag }}
{{- end }}
{{- else if $value }}
- {{ printf "%s=%s" $flag (kindIs "string" $value | ternary $value (printf "%d" (int64 $value))) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* What the program would refuse, or what makes no sense, in a sentence. */ -}}
{{- define "restamp.check" -}}
{{- $run := .Values.run }}
{{- if not (or (include "restamp.reloads" .) (include "restamp.reportsDrift" .)) }}
{{- fail "run.reload and run.drift are both off: nothing is left to do" }}
{{- end }}
{{- if $run.namespace }}
{{- range list "excludeNamespace" "namespaceSelector" "driftNamespaceSelector" "stakaterNamespaceSelector" }}
{{- if get $run . }}
{{- fail (printf "run.namespace and run.%s exclude each other" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $run.stakaterNamespaceSelector (not $run.stakaterAnnotations) }}
{{- fail "run.stakaterNamespaceSelector needs run.stakaterAnnotations" }}
{{- end }}
{{- if and $run.rerunJobs (not (include "restamp.reloads" .)) }}
{{- fail "run.rerunJobs needs run.reload" }}
{{- end }}
{{- end -}}
