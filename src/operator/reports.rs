//! The reports: which should be there, which are, and the writes that lead from one to the other. One write at a time
//! for each report, and only when something changed.

use std::collections::{HashMap, HashSet};

use crate::api::drift_report::{DriftReport, DriftReportStatus};
use crate::api::reload_status::ReloadStatus;
use crate::model::names::Name;
use crate::model::report::{self, ReportKey};
use crate::model::scope::Extent;
use crate::operator::write::Place;

/// A report as the API server has it.
#[derive(Debug, Clone)]
struct Stored {
    place: Place,
    report: DriftReport,
}

/// What should be there.
#[derive(Debug, Clone)]
enum Wanted {
    This(Box<DriftReport>),
    None,
}

/// A write that is due.
#[derive(Debug, Clone)]
pub enum Order {
    /// It is not there yet.
    Create(Box<DriftReport>),
    /// Its status is another one.
    Update(Box<DriftReport>, Place),
    /// It should not be there.
    Delete(Place),
}

/// What became of a write.
#[derive(Debug, Clone)]
pub enum Written {
    /// The report with this content stands there.
    Stands(Box<DriftReport>, Place),
    /// It is gone.
    Gone,
}

/// All reports.
#[derive(Debug, Default)]
pub struct Reports {
    stored: HashMap<ReportKey, Stored>,
    wanted: HashMap<ReportKey, Wanted>,
    in_flight: HashSet<ReportKey>,
    /// What the lists in progress have shown so far.
    listed: HashMap<Extent, HashSet<ReportKey>>,
}

impl Reports {
    /// The status that the API server has, as far as we know.
    pub fn status(&self, key: &ReportKey) -> Option<&DriftReportStatus> {
        self.stored.get(key)?.report.status.as_ref()
    }

    /// What the reports on workloads say of reloading, with their namespaces.
    pub fn reload_statuses(&self) -> impl Iterator<Item = (&Name, &ReloadStatus)> {
        self.stored
            .iter()
            .filter_map(|((namespace, _), stored)| Some((namespace, stored.report.status.as_ref()?.reload.as_ref()?)))
    }

    /// A full list begins.
    pub fn list_begins(&mut self, extent: Extent) {
        self.listed.insert(extent, HashSet::new());
    }

    /// The list is complete; these were not in it.
    pub fn list_ends(&mut self, extent: &Extent) -> Vec<ReportKey> {
        let listed = self.listed.remove(extent).unwrap_or_default();
        let known = self.stored.keys().filter(|key| extent.covers(&key.0));
        let gone: Vec<ReportKey> = known.filter(|key| !listed.contains(*key)).cloned().collect();
        for key in &gone {
            self.stored.remove(key);
        }
        gone
    }

    /// A namespace is out of scope: its reports stay as they are.
    pub fn forget_within(&mut self, namespace: &Name) {
        self.stored.retain(|(within, _), _| within != namespace);
        self.wanted.retain(|(within, _), _| within != namespace);
    }

    /// A report was seen in a list.
    pub fn listed(&mut self, report: &DriftReport, extent: &Extent) -> Option<ReportKey> {
        let key = self.seen(report)?;
        self.listed.entry(extent.clone()).or_default().insert(key.clone());
        Some(key)
    }

    /// A report was seen.
    pub fn seen(&mut self, report: &DriftReport) -> Option<ReportKey> {
        let key = key_of(report)?;
        let place = Place::of(report)?;
        let known = self.stored.get(&key).map(|stored| &stored.place);
        // Our own write may have told us of a later version already.
        if known.is_none_or(|known| known.uid != place.uid || known.version < place.version) {
            self.stored.insert(key.clone(), Stored { place, report: report.clone() });
        }
        Some(key)
    }

    /// A report was deleted.
    pub fn gone(&mut self, report: &DriftReport) -> Option<ReportKey> {
        let key = key_of(report)?;
        self.stored.remove(&key);
        Some(key)
    }

    /// This report should be there.
    pub fn want(&mut self, report: DriftReport) -> Option<ReportKey> {
        let key = key_of(&report)?;
        self.wanted.insert(key.clone(), Wanted::This(Box::new(report)));
        Some(key)
    }

    /// No report of this name should be there.
    pub fn want_none(&mut self, key: ReportKey) {
        self.wanted.insert(key, Wanted::None);
    }

    /// Its subject is gone; the garbage collector takes the report.
    pub fn forget(&mut self, key: &ReportKey) {
        self.wanted.remove(key);
    }

    /// The write that is due for this report, if none is under way.
    pub fn next(&mut self, key: &ReportKey) -> Option<Order> {
        if self.in_flight.contains(key) {
            return None;
        }
        let order = match (self.wanted.get(key)?, self.stored.get(key)) {
            (Wanted::This(report), None) => Order::Create(report.clone()),
            // What a report is about can't be changed, and its record would be read as another's.
            (Wanted::This(wanted), Some(stored)) if wanted.spec != stored.report.spec => {
                Order::Delete(stored.place.clone())
            }
            (Wanted::This(wanted), Some(stored)) => {
                let mut report = wanted.clone();
                let before = stored.report.status.clone().unwrap_or_default();
                report.status = report.status.map(|status| report::continuing(status, &before));
                if report.status.as_ref() == Some(&before) {
                    return None;
                }
                Order::Update(report, stored.place.clone())
            }
            (Wanted::None, Some(stored)) => Order::Delete(stored.place.clone()),
            (Wanted::None, None) => {
                self.wanted.remove(key);
                return None;
            }
        };
        self.in_flight.insert(key.clone());
        Some(order)
    }

    /// A write ended, well or not.
    pub fn ended(&mut self, key: &ReportKey, written: Option<Written>) {
        self.in_flight.remove(key);
        match written {
            Some(Written::Stands(report, place)) => {
                let known = self.stored.get(key).map(|stored| &stored.place);
                if known.is_none_or(|known| known.uid != place.uid || known.version < place.version) {
                    self.stored.insert(key.clone(), Stored { place, report: *report });
                }
            }
            Some(Written::Gone) => {
                self.stored.remove(key);
            }
            None => {}
        }
    }
}

fn key_of(report: &DriftReport) -> Option<ReportKey> {
    let metadata = &report.metadata;
    Some((metadata.namespace.as_deref()?.into(), metadata.name.clone()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::drift_report::{DriftReportSpec, Subject};

    fn about(kind: &str) -> DriftReport {
        let subject = Subject { api_version: "apps/v1".to_owned(), kind: kind.to_owned(), name: "w".into() };
        let mut report = DriftReport::new("deployment-w", DriftReportSpec { subject });
        report.metadata.namespace = Some("ns".to_owned());
        report
    }

    fn stored(report: DriftReport) -> DriftReport {
        let mut stored = report;
        stored.metadata.uid = Some("u".to_owned());
        stored.metadata.resource_version = Some("7".to_owned());
        stored
    }

    #[test]
    fn a_report_of_the_same_name_about_something_else_makes_way() {
        let mut reports = Reports::default();
        reports.seen(&stored(about("StatefulSet"))).unwrap();
        let key =
            reports.want(DriftReport { status: Some(DriftReportStatus::default()), ..about("Deployment") }).unwrap();
        assert!(matches!(reports.next(&key), Some(Order::Delete(_))));
        reports.ended(&key, Some(Written::Gone));
        assert!(matches!(reports.next(&key), Some(Order::Create(_))));
    }
}
