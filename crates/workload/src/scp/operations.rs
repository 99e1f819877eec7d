//! The kinds of requests that reports distinguish, and their names.

use callmodel::scp::{Method, ScpModel};

/// A kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Position of its interface in the model.
    pub interface: usize,
    /// Whether the SCP discovers the producer (Model D).
    pub delegated: bool,
    /// Position of its method among those of the model.
    pub method: usize,
    /// Position of its priority in the model; 0 where there are none.
    pub priority: usize,
}

/// All kinds of a model.
#[derive(Clone, Debug)]
pub struct Operations {
    interfaces: Vec<String>,
    /// Numbers of the priorities; one that is absent where there are none.
    priorities: Vec<Option<u8>>,
    methods: Vec<Method>,
}

impl Operations {
    /// Those of a model.
    #[must_use]
    pub fn new(model: &ScpModel) -> Self {
        let mut priorities: Vec<Option<u8>> = model.priorities.iter().map(|one| Some(one.priority)).collect();
        if priorities.is_empty() {
            priorities.push(None);
        }
        Self {
            interfaces: model.interfaces.iter().map(|one| one.name.clone()).collect(),
            priorities,
            methods: model.methods().iter().map(|(method, _)| *method).collect(),
        }
    }

    /// Its number: the position of its name.
    #[must_use]
    pub fn number(&self, operation: &Operation) -> u16 {
        let at = (usize::from(operation.delegated) * self.methods.len() + operation.method)
            * self.priorities.len()
            + operation.priority;
        u16::try_from(at * self.interfaces.len() + operation.interface).unwrap_or(u16::MAX)
    }

    /// All of them, by number.
    #[must_use]
    pub fn all(&self) -> Vec<Operation> {
        let mut all = Vec::new();
        for delegated in [false, true] {
            for method in 0..self.methods.len() {
                for priority in 0..self.priorities.len() {
                    for interface in 0..self.interfaces.len() {
                        all.push(Operation {
                            interface,
                            delegated,
                            method,
                            priority,
                        });
                    }
                }
            }
        }
        all
    }

    /// Their names, by number: `N7 (D)`, with method and priority where they differ.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let name = |operation: Operation| {
            let mut name = self.interfaces[operation.interface].clone();
            if self.methods.len() > 1 {
                name.push(' ');
                name += self.methods[operation.method].name();
            }
            if let Some(priority) = self.priorities[operation.priority] {
                name += &format!(", priority {priority}");
            }
            name + if operation.delegated { " (D)" } else { " (C)" }
        };
        self.all().into_iter().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_the_place_of_its_name() {
        let mut model = callmodel::find("scp/model-d-1").unwrap().model.scp.unwrap();
        model.methods.clear();
        let plain = Operations::new(&model);
        assert_eq!(plain.names()[0], "N11 (C)");
        assert_eq!(plain.names().len(), 2 * model.interfaces.len());
        model.idempotent = settings::Percent::new(50.0);
        model.priorities =
            serde_json::from_str(r#"[{"priority": 3, "weight": 1}, {"priority": 20, "weight": 2}]"#).unwrap();
        for operations in [plain, Operations::new(&model)] {
            for (number, operation) in operations.all().iter().enumerate() {
                assert_eq!(usize::from(operations.number(operation)), number, "{operation:?}");
            }
        }
        let names = Operations::new(&model).names();
        assert!(
            names.contains(&"N11 PUT, priority 20 (D)".to_owned()),
            "{names:?}"
        );
    }
}
