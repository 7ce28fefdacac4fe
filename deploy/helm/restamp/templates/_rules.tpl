{{- /* What the operator needs wherever it watches. It changes nothing but pod templates and its own reports. */ -}}
{{- define "restamp.rules" -}}
{{- $read := list "get" "list" "watch" }}
{{- $stamps := include "restamp.stamps" . }}
{{- $workloads := $stamps | empty | ternary $read (append $read "patch") }}
# What workloads read, and which pods have read it. Values become digests as they arrive.
- apiGroups: [""]
  resources: [{{ without (list "configmaps" "secrets" "pods") (printf "%ss" (lower .Values.run.ignoreConfigKind)) | join ", " }}]
  verbs: [get, list, watch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get, list, watch]
{{- if or (include "restamp.reportsDrift" .) .Values.run.rerunJobs }}
# Jobs and CronJobs are named as consumers in reports. What takes more of them is in a role of its own.
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [get, list, watch]
{{- end }}
{{- if include "restamp.reportsDrift" . }}
# A number of pods that a HorizontalPodAutoscaler sets is no drift.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch]
{{- end }}
{{- if $stamps }}
# The stamp is one annotation of the pod template.
{{- end }}
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [{{ join ", " $workloads }}]
{{- range .Values.run.workloadKind }}
- apiGroups: [{{ splitList "/" .kind | first }}]
  resources: [{{ .resource }}]
  verbs: [{{ join ", " $workloads }}]
{{- end }}
{{- if and (include "restamp.reloads" .) (ne .Values.run.ignoreConfigKind "SecretProviderClass") }}
# Which versions pods hold of a SecretProviderClass, where the Secrets Store CSI driver is installed.
- apiGroups: [secrets-store.csi.x-k8s.io]
  resources: [secretproviderclasspodstatuses]
  verbs: [get, list, watch]
{{- end }}
# Its own reports, which also hold what it knows of each workload.
- apiGroups: [restamp.dev]
  resources: [driftreports]
  verbs: [get, list, watch, create, delete]
- apiGroups: [restamp.dev]
  resources: [driftreports/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{- define "restamp.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "restamp.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
